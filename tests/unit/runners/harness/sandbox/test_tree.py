"""Real process trees, watched and ended."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

from runners.harness.sandbox.tree import descendants, kill_tree, memory_of_tree

GRANDCHILDREN = """
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
HOLDER = """
import sys
held = bytearray(200 << 20)
sys.stdout.write("up"); sys.stdout.flush()
sys.stdin.read()
"""
SHARER = HOLDER.replace("sys.stdin.read()", "import os; os.fork(); os.fork(); sys.stdin.read()")
MIB = 1 << 20


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[bytes]]]:
    running: list[subprocess.Popen[bytes]] = []
    yield running
    for process in running:
        with contextlib.suppress(psutil.NoSuchProcess):
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


def settled(pid: int, count: int) -> tuple[int, ...]:
    """The descendants, once so many are there."""
    process = psutil.Process(pid)
    while len(process.children(recursive=True)) < count:
        continue
    return descendants(pid)


def test_descendants_are_found_across_sessions(started: list[subprocess.Popen[bytes]]) -> None:
    pid = run(started, GRANDCHILDREN)
    found = settled(pid, 4)
    assert set(found) == {p.pid for p in psutil.Process(pid).children(recursive=True)}
    assert len(found) == 4


def test_a_process_that_is_gone_has_neither_descendants_nor_memory() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert descendants(process.pid) == ()
    assert memory_of_tree(process.pid) == 0


def test_the_memory_of_a_process_is_what_it_holds(started: list[subprocess.Popen[bytes]]) -> None:
    pid = run(started, HOLDER)
    assert 200 * MIB <= memory_of_tree(pid) < 260 * MIB


def test_pages_shared_in_a_tree_count_once(started: list[subprocess.Popen[bytes]]) -> None:
    pid = run(started, SHARER)
    settled(pid, 3)
    assert 200 * MIB <= memory_of_tree(pid) < 300 * MIB


def test_killing_a_tree_leaves_nothing_running(started: list[subprocess.Popen[bytes]]) -> None:
    pid = run(started, GRANDCHILDREN)
    tree = [psutil.Process(each) for each in (pid, *settled(pid, 4))]
    kill_tree(pid)
    ended = {psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD}
    assert all(not each.is_running() or each.status() in ended for each in tree)
