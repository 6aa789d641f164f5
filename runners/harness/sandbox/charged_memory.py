"""Finds memory that Linux keeps for a candidate, although no process has it in its page tables.

The watchdog of processes cannot find it: shared memory outside of all page tables, the kernel's
records for a process, such as locks or mappings, and pages that only a socket or a pipe holds.
"""

import errno
import math
import re
import select
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from runners.harness.deadline import Deadline
from runners.harness.sandbox import process_limits
from runners.harness.verdicts import MachineError
from runners.process_tree import descendants, living_threads

_FILES = (("memory.usage_in_bytes", "total_rss", "total_cache"), ("memory.current", "anon", "file"))
"""In cgroup version 1 and 2: the file with all memory, and the parts of it that are not counted."""
_SHARED = re.compile(rb" (\d+) +(?:/dev/zero \(deleted\)|\[anon_shmem:.*\])$", re.MULTILINE)
"""A mapping of shared memory that belongs to no file, also after PR_SET_VMA: its inode."""
_SHARED_OR_MEMORY_FILE = re.compile(_SHARED.pattern.replace(b"(?:", b"(?:/memfd:.*|"), re.MULTILINE)
_UNMAPPED_SHARE, _UNMAPPED_LEAST = 4, 256 << 20
MAPS_MOST = 16 << 20
"""The most bytes of a process's list of mappings that are read: its paths can be very long."""
_MARGIN = 16
"""Other programs may take one part in this many of a limit while a killed program ends."""
_FREED_S, _POLL_S = 2.0, 0.01


def hides_more(
    pid: int,
    before: int,
    limit: int,
    *,
    gpu: bool,
    kill: Callable[[], object],
    known: frozenset[bytes] = frozenset(),
) -> bool:
    """Return whether a process and its descendants keep over `limit` bytes of shared memory.

    Linux does not report whose it is. So the answer is yes if the harness's shared memory exceeds
    `before` by over `limit`, and the process has mapped some or, on a GPU, memory files as large.
    If the harness has no group of its own, the memory may be other programs'. On a GPU, whose
    driver maps shared memory too, it may be another candidate's. The process is then killed to see
    whose it is. Mappings of `known` inodes do not count.
    """
    if process_limits.shared_memory() - before <= limit:
        return False
    if gpu and memory_files(pid) > limit:
        return True
    if not maps_shared_memory(pid, known, gpu=gpu):
        return False
    if not gpu and process_limits.memory_group() is not None:
        return True
    return freed_by_killing(kill, process_limits.shared_memory, limit - limit // _MARGIN)


def freed_by_killing(kill: Callable[[], object], memory: Callable[[], int], least: int) -> bool:
    """Kill a program; return True if that frees `least` bytes of the machine's memory.

    MachineError if it does not: the memory was others', and the program was killed without a fault.
    """
    used, deadline = memory(), Deadline.after(_FREED_S)
    kill()
    while used - memory() < least:
        if deadline.remaining < 0:
            raise MachineError("other programs used memory that could have been the submission's")
        select.select([], [], [], _POLL_S)
    return True


def kept_by_drivers() -> tuple[int, int]:
    """Return the bytes of drivers' pages, and of records that Linux and its drivers keep."""
    return process_limits.driver_memory(), process_limits.kernel_memory()


def burdens_driver(
    pid: int, inherited: int, before: tuple[int, int], most: int, *, kill: Callable[[], object]
) -> bool:
    """Return whether a GPU's driver keeps too many pages or records for a process.

    Linux reports only those of all processes. So the process is killed to see whose they are, if
    the pages have grown by over `most` bytes since `before`, or if the records have, and the
    process has grown by an eighth of that beyond what it `inherited`. With 11 GB of records, a
    process had grown by a third of the limit and took over 10 s to exit.
    """
    pages, records = (kept - then for kept, then in zip(kept_by_drivers(), before, strict=True))
    if pages > most:
        return freed_by_killing(kill, process_limits.driver_memory, most // 2)
    if records <= most or process_limits.memory_of_tree(pid) - inherited <= most // 8:
        return False
    return freed_by_killing(kill, process_limits.kernel_memory, most // 2)


def maps_shared_memory(
    pid: int, known: frozenset[bytes] = frozenset(), *, gpu: bool = False
) -> bool:
    """Return whether a process or a descendant has mapped shared memory that belongs to no file.

    Its pages stay when they leave the process's page tables, and Linux does not report how many
    there are. For a process that cannot be inspected or has a very long list of mappings, the
    answer is yes. On a GPU, where a candidate may create them, memory files count too.
    """
    pattern = _SHARED_OR_MEMORY_FILE if gpu else _SHARED
    for process in (pid, *descendants(pid)):
        for thread in living_threads(process)[:1]:
            try:
                text = _mappings(thread)
            except PermissionError:
                return True
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has just ended
            if len(text) == MAPS_MOST or set(pattern.findall(text)) - known:
                return True
    return False


def shared_mappings(pid: int) -> frozenset[bytes]:
    """Return the inodes of the shared memory and memory files that one process has mapped."""
    try:
        return frozenset(_SHARED_OR_MEMORY_FILE.findall(_mappings(pid)))
    except OSError:
        return frozenset()


def _mappings(pid: int) -> bytes:
    with Path(f"/proc/{pid}/maps").open("rb") as maps:
        return maps.read(MAPS_MOST)


def memory_files(pid: int) -> float:
    """Return the bytes of the memory files that a process and its descendants have open.

    Infinity if one of the processes cannot be inspected.
    """
    sizes: dict[int, int] = {}
    for process in (pid, *descendants(pid)):
        try:
            for each in Path(f"/proc/{process}/fd").iterdir():
                with suppress(FileNotFoundError):  # it has just been closed
                    if _is_memory_file(each):
                        file = each.stat()
                        sizes[file.st_ino] = file.st_blocks * 512
        except PermissionError:
            return math.inf
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has just ended
    return sum(sizes.values())


def _is_memory_file(link: Path) -> bool:
    try:
        return str(link.readlink()).startswith("/memfd:")
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:  # the path of another file
            return False
        raise


def unmapped_limit(memory: int) -> int:
    """Return how many of the `memory` bytes that a program may use may be unmapped.

    Linux frees its records for a process far more slowly than pages: after many forks of many
    mappings, an exit takes seconds for each GiB.
    """
    return max(min(memory, _UNMAPPED_LEAST), memory // _UNMAPPED_SHARE)


def keeps_unmapped(
    pid: int, before: int, memory: int, *, gpu: bool, kill: Callable[[], object]
) -> bool:
    """Return whether a program with a limit of `memory` bytes keeps too many of them unmapped.

    If the harness has no group, they are the kernel's records of the whole machine. The program is
    then killed to see whose they are, if it has other processes: one process alone makes few. On a
    GPU the answer is then no, because its driver keeps records too (see `CandidateHandle`).
    """
    limit = unmapped_limit(memory)
    if unmapped_memory() - before <= limit:
        return False
    if process_limits.memory_group() is not None:
        return True
    if gpu or not descendants(pid):
        return False
    return freed_by_killing(kill, unmapped_memory, limit - limit // _MARGIN)


def unmapped_memory() -> int:
    """Return the bytes in the group that are neither of processes nor of files.

    Without a group, the bytes of the kernel's own records. Files include shared memory and scratch
    folders.
    """
    own = process_limits.memory_group()
    if own is None:
        return process_limits.kernel_memory()
    for name, *parts in _FILES:
        try:
            total = int((own / name).read_text())
            words = (own / "memory.stat").read_text().split()
            return total - sum(int(words[words.index(part) + 1]) for part in parts)
        except (OSError, ValueError):
            continue
    return 0
