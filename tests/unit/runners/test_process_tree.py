"""Real process trees, watched."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

from runners.process_tree import alive, descendants, living_threads, thread_states

TREE = """
import os, sys
for _ in range(2):
    if os.fork() == 0:
        os.setsid()
        os.fork()
        break
else:
    sys.stdout.write("up"); sys.stdout.flush()
sys.stdin.read()
"""
HEADLESS = """
import ctypes, sys, threading
threading.Thread(target=sys.stdin.read).start()
sys.stdout.write("up"); sys.stdout.flush()
ctypes.CDLL(None).pthread_exit(None)
"""


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[bytes]]]:
    running: list[subprocess.Popen[bytes]] = []
    yield running
    for process in running:
        for child in psutil.Process(process.pid).children(recursive=True):
            child.kill()
        process.kill()
        process.communicate()


def run(started: list[subprocess.Popen[bytes]], script: str) -> int:
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, "-c", script], stdin=pipe, stdout=pipe)
    started.append(process)
    assert process.stdout is not None
    assert process.stdout.read(2) == b"up"
    return process.pid


def test_descendants_are_found_across_sessions(started: list[subprocess.Popen[bytes]]) -> None:
    pid = run(started, TREE)
    process = psutil.Process(pid)
    while len(process.children(recursive=True)) < 4:
        continue
    assert set(descendants(pid)) == {each.pid for each in process.children(recursive=True)}


@pytest.mark.parametrize("name", [b"\xc8\xc9", b") Z 1 (", b"\n) Z"])
def test_a_process_may_have_any_name(started: list[subprocess.Popen[bytes]], name: bytes) -> None:
    renamed = f"import ctypes\nctypes.CDLL(None).prctl(15, {name!r}, 0, 0, 0)\n"
    pid = run(started, renamed + "import sys\nprint('up', flush=True)\nsys.stdin.read()")
    assert thread_states(pid)[pid] in "RS"
    assert alive(pid)


def test_a_process_that_is_gone_has_nothing() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert descendants(process.pid) == ()
    assert thread_states(process.pid) == {}
    assert not alive(process.pid)


def test_a_zombie_is_not_alive_and_no_descendant() -> None:
    pid = os.fork()
    if pid == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert not alive(pid)
    assert pid not in descendants(os.getpid())
    os.waitpid(pid, 0)


def test_a_process_whose_first_thread_ended_is_alive(
    started: list[subprocess.Popen[bytes]],
) -> None:
    pid = run(started, HEADLESS)
    while thread_states(pid)[pid] != "Z":
        continue
    assert alive(pid)
    assert pid not in living_threads(pid)
