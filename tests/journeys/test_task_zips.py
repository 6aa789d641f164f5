"""Walked by an author who has a checkout, and a Podium elsewhere that takes task zips.

Most tasks of this repository take files from beside their folder. The author packs each task and
opens a board of the zip alone; of one the server runs the solutions first, and then judges one.
"""

import io
import re
import subprocess
import threading
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.architecture.tree import ROOT
from tests.e2e.command import Podium, fresh, terminate

pytestmark = [pytest.mark.postgres, pytest.mark.slow, pytest.mark.timeout(400)]

TASKS = sorted(file.parent for file in (ROOT / "tasks").glob("*/*/task.yml"))
PROVEN = ROOT / "tasks" / "examples" / "grayscale"
"""The one whose solutions take the least time."""
START_S, CHECK_S, JUDGE_S = 60, 240, 100


@dataclass(frozen=True, slots=True)
class Site:
    """The other Podium, which is up, and the author's token at its door."""

    podium: Podium
    author: httpx.Client

    def ended(self, path: str, seconds: float) -> dict[str, Any]:
        """What is told at that path once it has ended."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            told: dict[str, Any] = self.author.get(path).raise_for_status().json()
            if told["state"] not in {"waiting", "queued", "running"}:
                return told
            time.sleep(0.2)
        raise TimeoutError(f"{path} has not ended after {seconds} s")


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with fresh("local") as podium:
        podium.environment["PODIUM_HTTP_PORT"] = "0"
        process = podium.start("up")
        try:
            url = _address(process)
            made = podium("token", "create", "--person", "author", "--admin")
            assert made.returncode == 0, made.stderr
            headers = {"Authorization": f"Bearer {made.stdout.strip()}"}
            base = f"{url}/api/v1/"
            with httpx.Client(base_url=base, headers=headers, timeout=60) as author:
                yield Site(podium, author)
        finally:
            terminate(process)


def _address(process: subprocess.Popen[str]) -> str:
    """The address that it tells when it is up."""
    overdue = threading.Timer(START_S, process.kill)
    overdue.start()
    said = ""
    for line in process.stdout or ():
        said += line
        if "Ctrl-C" in line:
            break
    overdue.cancel()
    (url,) = re.findall(r"http://127\.0\.0\.1:\d+", said)
    return str(url)


def _packed(podium: Podium, task: Path) -> Path:
    file = podium.folder / f"{task.parent.name}-{task.name}.zip"
    if not file.exists():
        packed = podium("task", "pack", task, "--out", file)
        assert packed.returncode == 0, packed.stderr
        assert f"podium task publish {file}" in packed.stdout.replace("\n", "")
    return file


@pytest.mark.parametrize("task", TASKS, ids=lambda task: f"{task.parent.name}-{task.name}")
def test_a_packed_task_is_a_board_of_its_own(site: Site, task: Path) -> None:
    file = _packed(site.podium, task)
    name = file.stem.replace("_", "-")

    opened = site.podium("task", "publish", file, "--name", name, "--gpu", "H100", "--unchecked")

    assert opened.returncode == 0, opened.stderr
    assert f"{name} on H100: created, task version 1" in opened.stdout
    told = site.author.get(f"leaderboards/{name}/task").raise_for_status().json()
    assert told["name"] == task.name


def test_a_folder_zipped_alone_is_refused_with_the_command_that_packs_it(site: Site) -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for file in sorted(PROVEN.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                archive.write(file, file.relative_to(PROVEN.parent))

    answer = site.author.post(
        "leaderboards", data={"name": "alone"}, files={"task_zip": ("alone.zip", made.getvalue())}
    )

    assert answer.status_code == 400
    assert "utils.py: there is no such file" in answer.json()["detail"]
    assert "`podium task pack DIR` creates a zip" in answer.json()["detail"]


def test_a_packed_task_is_proven_by_the_server_and_judges_a_shipped_solution(site: Site) -> None:
    file = _packed(site.podium, PROVEN)
    handed = site.author.post(
        "leaderboards",
        data={"name": "grayscale", "gpus": "CPU"},
        files={"task_zip": (file.name, file.read_bytes())},
    )
    assert handed.status_code == 202, handed.text
    check = site.ended(f"checks/{handed.json()['id']}", CHECK_S)
    assert check["state"] == "published", check

    kernel = next(iter(sorted((PROVEN / "solutions" / "correct").glob("torch_*.py"))))
    submitted = site.author.post(
        "submissions",
        data={"mode": "test", "board": "grayscale"},
        files={"file": (kernel.name, kernel.read_bytes())},
    )
    assert submitted.is_success, submitted.text
    ended = site.ended(f"submissions/{submitted.json()['id']}", JUDGE_S)
    assert [job["evaluation"]["verdict"] for job in ended["jobs"]] == ["passed"], ended
