"""What a template forks is a child like any other."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil

from tests.doubles.launcher import ROOT, Command


def test_a_harness_is_a_child_of_who_asked_named_as_asked_and_its_death_ends_all() -> None:
    line = [sys.executable, "-m", "runners.harness", "--serve"]
    with subprocess.Popen(
        line,
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert b"ready" in process.stdout.readline()
        harness = psutil.Process(process.pid)
        assert harness.ppid() == os.getpid()
        assert harness.cmdline()[1:4] == line[1:]
        assert os.getsid(process.pid) == process.pid
        beneath = harness.children(recursive=True)
        assert beneath
        process.kill()
        assert process.wait() == -signal.SIGKILL
        assert psutil.wait_procs(beneath, timeout=10)[1] == []


def test_a_command_has_its_own_environment_and_status(tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "PODIUM_LEASE_S": "never"}
    with Command(["show", "1"], environment, tmp_path) as process:
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 3
    assert "PODIUM_LEASE_S" in said
