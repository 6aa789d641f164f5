"""Real process trees, watched and ended."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO

import psutil
import pytest

from runners.harness.sandbox import charged_memory, process_limits
from runners.harness.sandbox.charged_memory import (
    hides_more,
    maps_shared_memory,
    memory_files,
    shared_mappings,
)
from runners.harness.sandbox.process_limits import (
    holds_more,
    kill_beneath,
    kill_tree,
    memory_of_tree,
    shared_memory,
)
from runners.process_tree import alive, descendants

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
TABLES = """
import ctypes, sys
c = ctypes.CDLL(None)
c.mmap.restype = ctypes.c_void_p
size = 32 << 30
place = c.mmap(None, ctypes.c_size_t(size), 1, 0x4022, -1, ctypes.c_long(0))
c.madvise(ctypes.c_void_p(place), ctypes.c_size_t(size), 15)
for at in range(place, place + size, 2 << 20):
    c.madvise(ctypes.c_void_p(at), ctypes.c_size_t(4096), 22)
sys.stdout.write("up"); sys.stdout.flush()
sys.stdin.read()
"""
"""Reads one page of each page table of a mapping of 32 GiB without huge pages: 64 MiB of them."""
SHARER = HOLDER.replace("sys.stdin.read()", "import os; os.fork(); os.fork(); sys.stdin.read()")
UNMAPPED = """
import mmap, sys
shared = mmap.mmap(-1, 200 << 20)
for start in range(0, 200 << 20, 4 << 20):
    shared[start : start + (4 << 20)] = bytes(4 << 20)
    shared.madvise(mmap.MADV_DONTNEED, start, 4 << 20)
sys.stdout.write("up"); sys.stdout.flush()
sys.stdin.read()
"""
FILES = """
import os, sys
file = os.memfd_create("held")
for _ in range(50):
    os.write(file, bytes(4 << 20))
os.dup(file)
sys.stdout.write("up"); sys.stdout.flush()
sys.stdin.read()
"""
UNLISTED = (
    "import ctypes, mmap, os, sys\n"
    "c = ctypes.CDLL(None)\n"
    "c.mmap.restype = ctypes.c_void_p\n"
    "file = os.memfd_create('held')\n"
    "for _ in range(50):\n    os.write(file, bytes(4 << 20))\n"
    "assert c.mmap(None, ctypes.c_size_t(4096), 1, 2, file, ctypes.c_long(0))\n"
    "os.close(file)\n"
) + HOLDER.replace("held = bytearray(200 << 20)\n", "")
"""Keeps a memory file by a private mapping of one page, with no descriptor."""
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


def test_a_process_that_is_gone_has_no_memory() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert memory_of_tree(process.pid) == 0


def test_the_memory_of_a_process_is_what_it_holds(started: list[subprocess.Popen[bytes]]) -> None:
    pid = run(started, HOLDER)
    assert 200 * MIB <= memory_of_tree(pid) < 260 * MIB


def test_page_tables_count_as_32_times_their_memory(
    started: list[subprocess.Popen[bytes]],
) -> None:
    pid = run(started, TABLES)
    assert 32 * 64 * MIB <= memory_of_tree(pid) < 32 * 70 * MIB


def test_pages_shared_in_a_tree_count_once(started: list[subprocess.Popen[bytes]]) -> None:
    pid = run(started, SHARER)
    settled(pid, 3)
    assert 200 * MIB <= memory_of_tree(pid) < 300 * MIB


def test_shared_memory_stays_although_no_process_has_it_in_its_page_tables(
    started: list[subprocess.Popen[bytes]],
) -> None:
    before = shared_memory()
    pid = run(started, UNMAPPED)
    assert memory_of_tree(pid) < 60 * MIB
    assert shared_memory() - before > 150 * MIB
    assert maps_shared_memory(pid)


@pytest.mark.parametrize("script", [UNMAPPED, UNLISTED])
def test_on_a_gpu_hidden_memory_counts_if_killing_its_process_frees_it(
    started: list[subprocess.Popen[bytes]], script: str
) -> None:
    before = shared_memory()
    pid = run(started, script)
    killed: list[int] = []

    def kill() -> None:
        killed.append(pid)
        assert kill_tree(pid)

    def hides(known: frozenset[bytes]) -> bool:
        return hides_more(pid, before, 100 * MIB, gpu=True, kill=kill, known=known)

    assert memory_files(pid) == 0
    assert not hides(known=shared_mappings(pid))  # a driver's
    assert not killed
    assert hides(known=frozenset())
    assert killed


def test_memory_files_count_once_although_no_process_has_mapped_them(
    started: list[subprocess.Popen[bytes]],
) -> None:
    assert memory_files(run(started, HOLDER)) == 0
    assert 200 * MIB <= memory_files(run(started, FILES)) < 210 * MIB


def test_a_process_that_lets_nobody_look_may_have_memory_files_of_any_size(
    started: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_path: Path) -> Iterator[Path]:
        raise PermissionError

    pid = run(started, HOLDER)
    monkeypatch.setattr(Path, "iterdir", refuse)
    assert memory_files(pid) > 1 << 60


def test_a_process_that_lets_nobody_look_may_have_mapped_shared_memory(
    started: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, mode: str) -> IO[bytes]:
        if path.name == "maps":
            raise PermissionError
        return known(path, mode)

    known: Callable[[Path, str], IO[bytes]] = Path.open
    pid = run(started, HOLDER)
    assert not maps_shared_memory(pid)
    monkeypatch.setattr(Path, "open", refuse)
    assert maps_shared_memory(pid)


def test_a_list_of_mappings_is_not_read_to_its_end_if_that_takes_long(
    started: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = run(started, HOLDER)
    assert not maps_shared_memory(pid)
    monkeypatch.setattr(charged_memory, "MAPS_MOST", 100)
    assert maps_shared_memory(pid)


def test_a_file_with_too_long_a_path_is_no_memory_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(20):
        Path("d" * 250).mkdir()
        os.chdir("d" * 250)
    with open("deep", "wb") as deep:  # noqa: PTH123 - the path is longer than one may be
        with pytest.raises(OSError, match="too long"):
            Path(f"/proc/self/fd/{deep.fileno()}").readlink()
        assert memory_files(os.getpid()) < 1 << 60


def test_when_the_time_is_over_no_more_of_a_tree_is_counted(
    started: list[subprocess.Popen[bytes]],
) -> None:
    pid = run(started, SHARER)
    settled(pid, 3)
    assert memory_of_tree(pid, within_s=0) < memory_of_tree(pid, within_s=10)


def test_a_tree_holds_more_only_when_its_shared_pages_counted_once_are_more(
    started: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = run(started, SHARER)
    settled(pid, 3)
    assert holds_more(pid, 150 * MIB)
    assert not holds_more(pid, 300 * MIB)
    assert not holds_more(pid, 150 * MIB, within_s=-1)
    monkeypatch.setattr(process_limits, "memory_of_tree", pytest.fail)
    assert not holds_more(pid, 1000 * MIB)


@pytest.mark.parametrize("spared", [False, True])
def test_killing_leaves_nothing_running_but_what_is_spared(
    started: list[subprocess.Popen[bytes]], *, spared: bool
) -> None:
    pid = run(started, GRANDCHILDREN)
    beneath = settled(pid, 4)
    assert kill_beneath(pid) if spared else kill_tree(pid)
    assert not any(alive(each) for each in beneath)
    assert alive(pid) is spared


def test_a_process_that_does_not_end_in_time_is_said(
    started: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = run(started, GRANDCHILDREN)
    monkeypatch.setattr(process_limits, "_send", lambda *_: None)
    assert not kill_tree(pid, within_s=0.05)
    assert not kill_beneath(pid, within_s=0.05)


def test_memory_of_processes_that_let_nobody_look_is_counted_all_the_same(
    started: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str, fields: Mapping[str, int]) -> int:
        if "smaps" in path:
            raise PermissionError
        return known(path, fields)

    known = process_limits._sum_kib
    monkeypatch.setattr(process_limits, "_sum_kib", refuse)
    pid = run(started, SHARER)
    settled(pid, 3)
    assert memory_of_tree(pid) > 200 * MIB


def test_shared_memory_with_another_name_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    line = b"7f00-7f01 rw-s 00000000 00:01 12345                    %s\n"
    names = {b"[anon_shmem:numbers]": True, b"/dev/zero (deleted)": True, b"/dev/zero": False}
    for name, shared in names.items():
        text = line % b"/lib/a.so" + line % name + line % b"[anon:private]"
        monkeypatch.setattr(charged_memory, "_mappings", lambda _, text=text: text)
        assert maps_shared_memory(os.getpid()) is shared
    monkeypatch.undo()
    assert shared_mappings(1 << 22) == frozenset()  # no such process


@pytest.mark.parametrize(
    "name", [b"\xc8\xc9", *(b"%cVmPTE: -999999" % each for each in b"\n\r\v\f")]
)
def test_no_name_of_a_process_changes_what_is_counted(
    started: list[subprocess.Popen[bytes]], name: bytes
) -> None:
    named = f"import ctypes\nctypes.CDLL(None).prctl(15, {name!r}, 0, 0, 0)\n"
    pid = run(started, named + HOLDER)
    assert 200 * MIB < memory_of_tree(pid) < 300 * MIB


def test_all_but_the_spared_are_killed(started: list[subprocess.Popen[bytes]]) -> None:
    pid = run(started, GRANDCHILDREN)
    first, *_ = settled(pid, 4)
    assert kill_beneath(pid, (first, *descendants(first)))
    assert alive(first)
    assert descendants(pid) == (first, *descendants(first))


def test_huge_pages_count_although_linux_counts_them_separately(tmp_path: Path) -> None:
    status = tmp_path / "status"
    status.write_text("RssAnon:\t 8 kB\nRssFile:\t 64 kB\nHugetlbPages:\t 2048 kB\nVmPTE:\t 4 kB\n")

    counted = process_limits._resident_and_tables(str(status))

    assert sum(counted) == (8 + 2048 + 4) << 10


def test_memory_in_the_swap_space_counts(tmp_path: Path) -> None:
    status = tmp_path / "status"
    status.write_text("RssAnon:\t 8 kB\nVmPTE:\t 0 kB\nVmSwap:\t 64 kB\n")

    assert sum(process_limits._resident_and_tables(str(status))) == (8 + 64) << 10


def test_page_tables_that_resident_memory_needs_count_once(tmp_path: Path) -> None:
    status = tmp_path / "status"
    status.write_text("RssAnon:\t 1048576 kB\nVmPTE:\t 2060 kB\n")

    _, counted = process_limits._resident_and_tables(str(status))

    assert counted == (2048 + 32 * 12) << 10
