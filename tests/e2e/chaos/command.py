"""The `podium` command on one data folder, as separate processes."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.architecture.tree import ROOT
from tests.e2e.chaos.crowd import IDENTITY

UP_LIMIT_S = 60.0
STOP_LIMIT_S = 60.0


class Command:
    """Runs `podium` with the fake runner and a short lease."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "HOME": str(folder),
            "PODIUM_DATA_DIR": str(self.data),
            "PODIUM_RUNNERS": "fake",
            "PODIUM_LEASE_S": "1",
        } | environment

    def __call__(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "bot", *map(str, arguments)],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )

    def publish(self) -> None:
        """A board `identity` on the CPU."""
        published = self("task", "publish", IDENTITY)
        assert published.returncode == 0, published.stderr

    def file(self, name: str, directive: str) -> Path:
        """A source with a word for the fake runner."""
        path = self.folder / f"{name}.py"
        path.write_text(f"# fake: {directive}\ndef custom_kernel(data): ...\n")
        return path

    def submit(self, name: str, directive: str) -> None:
        """Queue a submission whose fate the fake runner reads in its source."""
        file = self.file(name, directive)
        queued = self("submit", file, "--leaderboard", "identity", "--as", name, "--no-wait")
        assert queued.returncode == 0, queued.stderr

    def shown(self, submission: int) -> dict[str, Any]:
        """What `podium show` tells of a submission."""
        told: dict[str, Any] = json.loads(self("show", str(submission), "--json").stdout)
        return told

    def start_up(self) -> subprocess.Popen[str]:
        """A `podium up` that said that it is up."""
        process = subprocess.Popen(
            [sys.executable, "-m", "bot", "up"],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
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
        return process

    @contextmanager
    def up(self) -> Iterator[subprocess.Popen[str]]:
        """A `podium up` that is ended politely, unless it has ended before."""
        process = self.start_up()
        try:
            yield process
        finally:
            terminate(process)


def terminate(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Ask it to end; gives its exit status and its last words."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=STOP_LIMIT_S)
    return process.returncode, said
