"""The demo as a real process: the whole main job on one task, and its check of itself."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.tree import ROOT

MATMUL = ROOT / "tasks" / "examples" / "matmul"


def _demo(folder: Path, runner: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bot", "demo", "--rounds", "2", *map(str, arguments)],
        cwd=folder,
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "HOME": str(folder),
            "TMPDIR": str(folder),
            "PODIUM_RUNNERS": runner,
            "DATABASE_URL": "postgresql://nobody@127.0.0.1:9/must_not_be_touched",
        },
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )


@pytest.fixture
def folder() -> Iterator[Path]:
    """Not below pytest's own folder: the database's account could not enter that one."""
    with tempfile.TemporaryDirectory(prefix="podium-test-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.slow
def test_real_kernels_are_published_submitted_judged_and_ranked(folder: Path) -> None:
    demo = _demo(folder, "local", "--tasks", MATMUL, "--json")
    assert demo.returncode == 0, demo.stderr
    outcome = json.loads(demo.stdout)
    [board] = outcome["standings"]
    times = [entry["time_ns"] for entry in board["entries"]]
    assert len(times) == 3
    assert times == sorted(times)
    assert {absent["verdict"] for absent in board["absent"]} == {"wrong_answer", "crashed"}
    assert outcome["faults"] == []
    assert not list(folder.glob("podium-demo-*"))


@pytest.mark.slow
def test_a_judge_that_passes_everything_is_found_out(folder: Path) -> None:
    demo = _demo(folder, "fake", "--tasks", MATMUL)
    assert demo.returncode == 1
    assert "must be crashed, is passed" in demo.stderr
    assert "must not be ranked and is" in demo.stderr
    assert "things went wrong" in demo.stdout


def test_a_folder_without_tasks_is_refused(folder: Path) -> None:
    demo = _demo(folder, "fake", "--tasks", folder / "nowhere")
    assert demo.returncode == 2
    assert "no task in there" in demo.stderr
