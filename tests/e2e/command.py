"""The `podium` command as a real process on a data folder of its own."""

import json
import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.architecture.tree import ROOT
from tests.doubles import launcher
from tests.doubles.databases import copy_migrated, temporary_folder

IDENTITY = ROOT / "tasks" / "examples" / "identity"
LEASE_S = "6"
"""Short, so that nobody waits long for who is gone."""
CALL_LIMIT_S = 100
UP_LIMIT_S = 60
STOP_LIMIT_S = 60
BRIEF_S = 8
"""Room for a round or two on a busy machine, and for a few on an idle one."""


class Podium:
    """The command on one data folder, with the fake runner unless told otherwise."""

    def __init__(self, folder: Path, runner: str = "fake", **environment: str) -> None:
        self.folder = folder
        self.environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "HOME": str(folder),
            "PODIUM_DATA_DIR": str(folder / "data"),
            "PODIUM_RUNNERS": runner,
            "PODIUM_LEASE_S": LEASE_S,
        } | environment

    def __call__(
        self, *arguments: str | Path, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        asked = [str(each) for each in arguments]
        return launcher.run(asked, self.environment | environment, self.folder, CALL_LIMIT_S)

    def file(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def publish(self) -> None:
        """A board `identity` on the CPU, whatever its solutions do on the fake runner."""
        published = self("task", "publish", IDENTITY, "--unchecked")
        assert published.returncode == 0, published.stderr

    def directed(self, name: str, directive: str) -> Path:
        """A source with a word for the fake runner."""
        return self.file(f"{name}.py", f"# fake: {directive}\ndef custom_kernel(data): ...\n")

    def queue(self, name: str, directive: str) -> None:
        """A submission of that person whose fate the fake runner reads in its source."""
        file = self.directed(name, directive)
        queued = self("submit", file, "--leaderboard", "identity", "--as", name, "--no-wait")
        assert queued.returncode == 0, queued.stderr

    def shown(self, submission: int) -> dict[str, Any]:
        """What `podium show` tells of a submission."""
        told: dict[str, Any] = json.loads(self("show", str(submission), "--json").stdout)
        return told

    def start(self, *arguments: str | Path) -> subprocess.Popen[str]:
        """The command under way, with everything that it says on its stdout."""
        asked = [str(each) for each in arguments]
        return launcher.Command(asked, self.environment, self.folder)

    def up(self) -> subprocess.Popen[str]:
        """A served data folder: gives the process once it said that it is up."""
        return self.come_up()[0]

    def come_up(self) -> tuple[subprocess.Popen[str], str]:
        """The same, with what it said."""
        process = self.start("up")
        return process, read_until_up(process)


def read_until_up(process: subprocess.Popen[str]) -> str:
    """What it says until it is up."""
    assert process.stdout is not None
    overdue = threading.Timer(UP_LIMIT_S, process.kill)
    overdue.start()
    said = ""
    for line in process.stdout:
        said += line
        if "Ctrl-C" in line:
            break
    overdue.cancel()
    assert "Podium is up" in said, said
    return said


def refusal(answer: subprocess.CompletedProcess[str], code: int) -> str:
    """The one message of a command that failed as it should: said plainly, and only on stderr."""
    assert answer.returncode == code, answer.stderr
    assert answer.stdout == ""
    assert "Traceback" not in answer.stderr
    assert answer.stderr.replace("\n", "").isprintable()
    message = answer.stderr.splitlines()[-1]
    assert message.startswith("podium: ")
    return message.removeprefix("podium: ")


def json_refusal(answer: subprocess.CompletedProcess[str], code: int) -> tuple[str, str]:
    """Code and message of a refusal as JSON, which stands alone on stdout in its closed shape."""
    assert answer.returncode == code, answer.stderr
    shape = json.loads(answer.stdout)
    assert list(shape) == ["error"]
    assert list(shape["error"]) == ["code", "message"]
    assert answer.stderr.splitlines()[-1] == f"podium: {shape['error']['message']}"
    return shape["error"]["code"], shape["error"]["message"]


def timed_briefly(task: Path, folder: Path) -> Path:
    """A copy of an example task whose ranked runs are timed for a few seconds at most."""
    copy = folder / "brief" / task.name
    shutil.copytree(task, copy, dirs_exist_ok=True)
    shutil.copy(task.parent / "utils.py", copy.parent)
    description = copy / "task.yml"
    text = description.read_text(encoding="utf-8")
    brief, count = re.subn(r"(?m)^ranked_timeout: .*$", f"ranked_timeout: {BRIEF_S}", text)
    assert count == 1
    description.write_text(brief, encoding="utf-8")
    return copy


@contextmanager
def serving_identity() -> Iterator[Podium]:
    """Podium with the identity board, timed briefly, up at `environment["URL"]`."""
    with fresh("local") as made:
        published = made("task", "publish", timed_briefly(IDENTITY, made.folder), "--unchecked")
        assert published.returncode == 0, published.stderr
        made.environment["PODIUM_HTTP_PORT"] = "0"
        process, said = made.come_up()
        made.environment["URL"] = re.findall(r"https?://[^/\s]+", said)[0]
        try:
            yield made
        finally:
            terminate(process)


@contextmanager
def fresh(runner: str = "fake") -> Iterator[Podium]:
    """A Podium with an empty database in a folder of its own, with nothing left behind."""
    with temporary_folder("podium-test-") as folder:
        podium = Podium(folder, runner)
        copy_migrated(Path(podium.environment["PODIUM_DATA_DIR"]))
        yield podium


@contextmanager
def running(podium: Podium) -> Iterator[subprocess.Popen[str]]:
    """A `podium up` that is ended politely, unless it has ended before."""
    process = podium.up()
    try:
        yield process
    finally:
        terminate(process)


@contextmanager
def served(podium: Podium) -> Iterator[Podium]:
    """The same Podium with a `podium up` beside it, which ends well."""
    process = podium.up()
    try:
        yield podium
    finally:
        status, said = terminate(process)
    assert status == 0, said
    assert "stopped" in said, said


@contextmanager
def served_at(podium: Podium) -> Iterator[str]:
    """The address of its door, at a port of its own, while a `podium up` holds it open."""
    podium.environment["PODIUM_HTTP_PORT"] = "0"
    process, said = podium.come_up()
    try:
        (url,) = re.findall(r"https?://\S+", said)
        yield url
    finally:
        terminate(process)


def terminate(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Ask it to end; gives its exit status and its last words."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=STOP_LIMIT_S)
    return process.returncode, said
