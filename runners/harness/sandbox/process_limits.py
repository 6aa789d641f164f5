"""Limits of processes: cgroups for the harness, the memory of a process tree, and killing one."""

import math
import os
import select
import signal
import time
from collections.abc import Callable, Container, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from runners.process_tree import alive, descendants, living_threads

KILL_S = 30.0
"""Seconds for killed processes to exit; with a GPU or large page tables it can take several."""
_POLL_S = 1e-3
_TABLES, _TABLES_COUNT = "VmPTE:", 32
"""Page tables count several times, because Linux takes long to free those of mapped files, whose
pages do not count. The tables that a process needs for its counted memory count once."""
_PAGES_OF_TABLE = 512
_RESIDENT = {"RssAnon:": 1, "RssShmem:": 1, "HugetlbPages:": 1, "VmSwap:": 1}
_PROPORTIONAL = dict.fromkeys(
    ("Pss_Anon:", "Pss_Shmem:", "Private_Hugetlb:", "Shared_Hugetlb:", "SwapPss:"), 1
)


def memory_of_tree(pid: int, within_s: float = math.inf) -> int:
    """Return the bytes of memory that a process and its descendants use, page tables included.

    File mappings are not counted.

    The memory of a single process is read from `status`, which takes microseconds. Several
    processes may share pages, so the proportional share of each is read. With many busy processes
    that can take seconds. After `within_s` seconds no further processes are counted.
    """
    end = time.monotonic() + within_s
    tree = (pid, *descendants(pid))
    memory_of = memory_of_process if len(tree) == 1 else _share_of
    total = 0
    for process in tree:
        total += sum(map(memory_of, living_threads(process)[:1]))
        if time.monotonic() > end:
            break
    return total


def holds_more(pid: int, limit: int, within_s: float = math.inf) -> bool:
    """Return whether a process and its descendants use over `limit` bytes, without file mappings.

    The first count includes shared pages once per process. `memory_of_tree` counts exactly, but
    only if the first count is over the limit: Linux then walks all pages and meanwhile blocks
    processes that map memory, which is too expensive to do many times a second.
    """
    end = time.monotonic() + within_s
    total = 0
    for process in (pid, *descendants(pid)):
        total += sum(map(memory_of_process, living_threads(process)[:1]))
        if total > limit:
            return memory_of_tree(pid, end - time.monotonic()) > limit
        if time.monotonic() > end:
            break
    return False


def memory_of_process(thread: int) -> int:
    """Return the bytes of memory that one process uses, including shared pages."""
    return sum(_resident_and_tables(f"/proc/{thread}/status"))


def shared_memory() -> int:
    """Return the bytes of the harness's shared memory, also those that no process has mapped.

    Without a group of its own, it is that of the whole machine.
    """
    if (group := memory_group()) is not None:
        with suppress(OSError, ValueError):
            words = (group / "memory.stat").read_text().split()
            return int(words[words.index("shmem") + 1])
    return _sum_kib("/proc/meminfo", {"Shmem:": 1})


def kernel_memory() -> int:
    """Return the bytes that Linux and its drivers keep for themselves and cannot give back."""
    return _sum_kib("/proc/meminfo", {"SUnreclaim:": 1})


def driver_memory() -> int:
    """Return the bytes of the machine's memory that no count of Linux explains, as drivers' pages.

    Counts that overlap another one are left out.
    """
    explained = ("MemFree", "Buffers", "Cached", "SwapCached", "AnonPages", "Slab", "KernelStack")
    parts = dict.fromkeys((f"{each}:" for each in (*explained, "PageTables", "Percpu")), -1)
    return _sum_kib("/proc/meminfo", {"MemTotal:": 1, **parts})


def data_bytes() -> int:
    """Return the bytes of this process that RLIMIT_DATA counts."""
    return _sum_kib("/proc/self/status", {"VmData:": 1})


def _share_of(thread: int) -> int:
    """The proportional share of a process; all of its memory if it cannot be inspected."""
    try:
        share = _sum_kib(f"/proc/{thread}/smaps_rollup", _PROPORTIONAL)
        return share + _resident_and_tables(f"/proc/{thread}/status")[1]
    except PermissionError:
        return memory_of_process(thread)


def _resident_and_tables(status: str) -> tuple[int, int]:
    """Return the bytes of resident memory, and those for which its page tables count."""
    found = _read_kib(status, {*_RESIDENT, _TABLES})
    tables = found.pop(_TABLES, 0)
    resident = sum(found.values())
    more = max(0, tables - resident // _PAGES_OF_TABLE)
    return resident, tables + (_TABLES_COUNT - 1) * more


def _sum_kib(path: str, fields: Mapping[str, int]) -> int:
    """Return the weighted sum of fields, in bytes."""
    return sum(fields[name] * size for name, size in _read_kib(path, fields).items())


def _read_kib(path: str, names: Container[str]) -> dict[str, int]:
    """Return fields in bytes. A process's name can have any bytes but a line break."""
    try:
        lines = Path(path).read_bytes().decode(errors="replace").split("\n")
    except (FileNotFoundError, ProcessLookupError):
        return {}  # the process has ended, or its memory is freed
    words = (line.split() for line in lines)
    return {each[0]: int(each[1]) << 10 for each in words if each and each[0] in names}


def kill_tree(pid: int, within_s: float = KILL_S) -> bool:
    """Kill a process and its descendants; return whether all have ended within `within_s` seconds.

    Killing PID 1 of a PID namespace kills the whole namespace. The caller reaps its own children.
    """
    return _kill_all(lambda: (pid, *descendants(pid)), within_s)


def kill_beneath(pid: int, spared: Iterable[int] = (), within_s: float = KILL_S) -> bool:
    """Kill the descendants of a process except `spared`; return whether all have ended in time.

    If the process adopts orphans, no descendant escapes when its own parent exits.
    """
    excluded = frozenset(spared)
    return _kill_all(
        lambda: tuple(process for process in descendants(pid) if process not in excluded), within_s
    )


def _kill_all(list_processes: Callable[[], tuple[int, ...]], within_s: float) -> bool:
    """Kill listed processes until the list is empty and every process listed so far has ended.

    All are stopped before any is killed. Otherwise a process could fork after its children were
    listed, and the new child would escape.
    """
    end = time.monotonic() + within_s
    stopped: set[int] = set()
    while time.monotonic() < end:
        running = {process for process in list_processes() if alive(process)} - stopped
        stopped = running | {process for process in stopped if alive(process)}
        if running:
            _send(running, signal.SIGSTOP)
        elif stopped:
            _send(stopped, signal.SIGKILL)
            select.select([], [], [], _POLL_S)
        else:
            return True
    return False


def _send(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


_ROOT = Path("/sys/fs/cgroup")
_MEMBERSHIP = Path("/proc/self/cgroup")
_WAITED = Path("/proc/self/schedstat")
PREFIX = "podium-"
_PROCESSES = 8192
_SHARE_OF_MEMORY = 0.9
_WEIGHTS, _SHARES = (100, 10_000), (1024, 1 << 18)
"""The usual and the greatest weight of a group, in cgroup version 2 and 1."""


class Group:
    """One cgroup; it has one folder per hierarchy."""

    def __init__(self, folders: tuple[Path, ...]) -> None:
        self.folders = folders

    def enter(self) -> None:
        """Move this process into the group; its future children will be in it too."""
        for folder in self.folders:
            (folder / "cgroup.procs").write_text(str(os.getpid()))

    def remove(self) -> None:
        """Remove the group; if it is not empty, the next start removes it."""
        for folder in self.folders:
            try:
                folder.rmdir()
            except OSError:
                continue  # a process in it is still exiting


def require_cgroup() -> None:
    """Raise OSError unless this process is in a group from `make_cgroup`."""
    if not any(folder.name.startswith(PREFIX) for folder in own_folders().values()):
        raise OSError("no cgroup was made; process limits and the watchdog replace it")


def own_folders() -> dict[str, Path]:
    """Controller -> cgroup folder of this process; in cgroup version 2 the only key is ""."""
    found: dict[str, Path] = {}
    for line in _MEMBERSHIP.read_text().splitlines():
        _, names, path = line.split(":", 2)
        for name in names.split(","):
            mounted = _ROOT / name if name else _ROOT
            found[name] = mounted / path.lstrip("/")
    return found


def memory_group() -> Path | None:
    """The folder of the group that counts the memory of the harness alone; None without one."""
    folders = own_folders()
    own = folders.get("memory", folders.get("", _ROOT))
    return own if own.name.startswith(PREFIX) else None


def _group_limits() -> dict[str, dict[str, int]]:
    pages, page = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    memory = int(pages * page * _SHARE_OF_MEMORY)
    return {
        "memory": {"memory.limit_in_bytes": memory},
        "pids": {"pids.max": _PROCESSES},
        "": {"memory.max": memory, "pids.max": _PROCESSES},
    }


def _make_group(parent: Path, limits: dict[str, int]) -> Path:
    for other in parent.glob(f"{PREFIX}*"):
        if not Path("/proc", other.name.removeprefix(PREFIX)).exists():  # its creator was killed
            Group((other,)).remove()
    folder = parent / f"{PREFIX}{os.getpid()}"
    folder.mkdir()
    try:
        for name, limit in limits.items():
            (folder / name).write_text(str(limit))
    except OSError:
        folder.rmdir()
        raise
    return folder


def make_cgroup() -> Group:
    """Create an empty group with limits; OSError if that is refused."""
    own, limits = own_folders(), _group_limits()
    if (_ROOT / "cgroup.controllers").exists():
        return Group((_make_group(own[""], limits[""]),))
    if not {"memory", "pids"} <= own.keys():
        raise OSError("no memory and pids controllers are mounted")
    return Group(tuple(_make_group(own[name], limits[name]) for name in ("memory", "pids")))


class Precedence:
    """Lets the harness's group run before the machine's other processes, or equally with them.

    Candidates are in the group too, so the judge takes precedence only while it times short calls.
    """

    def __init__(self) -> None:
        self.file = -1
        """The descriptor of the group's weight; below 0 if the system gives no precedence."""
        self.weights = (b"", b"")
        self.taken: bool | None = None

    def use(self, file: Path, usual: int, most: int) -> None:
        """Open the file with the group's weight while this process may."""
        self.file = os.open(file, os.O_WRONLY | os.O_CLOEXEC)
        self.weights = (str(usual).encode(), str(most).encode())

    def take(self, *, wanted: bool) -> None:
        """Take precedence over other processes, or give it up."""
        if self.file >= 0 and wanted is not self.taken:
            os.pwrite(self.file, self.weights[wanted], 0)
            self.taken = wanted

    def reset(self) -> None:
        """Give it up, also if another process took it."""
        self.taken = None
        self.take(wanted=False)


precedence = Precedence()
"""The precedence of this process's group."""


def make_priority(limited: Group | None) -> Group:
    """Prepare `precedence`; return the additional group that cgroup version 1 needs for it.

    In version 2 it uses the group `limited` and returns an empty group. OSError if it is refused.
    """
    own = own_folders()
    if (_ROOT / "cgroup.controllers").exists():
        folder = limited.folders[0] if limited else None
        if folder is None or not (folder / "cpu.weight").exists():
            raise OSError("no cpu controller is delegated")
        precedence.use(folder / "cpu.weight", *_WEIGHTS)
        return Group(())
    if "cpu" not in own:
        raise OSError("no cpu controller is mounted")
    folders = [_make_group(own["cpu"], {"cpu.shares": _SHARES[0]})]
    precedence.use(folders[0] / "cpu.shares", *_SHARES)
    if "cpuacct" in own and not own["cpu"].samefile(own["cpuacct"]):
        folders.append(_make_group(own["cpuacct"], {}))
    return Group(tuple(folders))


def require_wait_times() -> None:
    """Raise OSError unless this system counts how long threads wait and who uses the cores."""
    for path in (_WAITED, Path("/proc/stat")):
        if not path.exists():
            raise OSError(f"{path} does not exist")
    if group_cpu_ns() is None:
        raise OSError("the harness has no cgroup that counts its CPU time")


def group_cpu_ns() -> int | None:
    """Return the CPU time of all processes, also ended ones, of this process's own group.

    None if it has no group of its own.
    """
    folders = own_folders()
    own = folders.get("cpuacct", folders.get("", _ROOT))
    if not own.name.startswith(PREFIX):
        return None
    try:
        if "cpuacct" in folders:
            return int((own / "cpuacct.usage").read_text())
        words = (own / "cpu.stat").read_text().split()
        return int(words[words.index("usage_usec") + 1]) * 1000
    except (OSError, ValueError):
        return None
