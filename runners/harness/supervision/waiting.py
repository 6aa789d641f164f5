"""Measures how long threads wait for cores and what other processes use; gives threads cores.

Linux counts for each thread how long it was ready to run without running. A candidate can make its
own threads wait for each other, so that alone shows nothing. Processes outside of the harness have
used all time of the cores that was neither idle nor used by the harness. The harness's group counts
the CPU time of all its processes, including those that have ended.

On a busy machine no core is idle, so Linux wakes a thread where it last ran. Two threads on one
core then stay there for hundreds of calls, which take twice as long as those of a candidate whose
threads happen to be apart. If one of the two spins until the other is done, a call even takes until
the next tick of the scheduler, 4 ms. `spread` therefore gives each thread its own core.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from runners.harness.sandbox.process_limits import group_cpu_ns
from runners.harness.supervision.process import CandidateProcess
from runners.process_tree import newest_process

CORES = frozenset(os.sched_getaffinity(0))
_CORES_MOST = 16
"""With more cores, threads are not spread: some cores are idle, and it would take too long."""
_STAT = Path("/proc/stat")
_TICK_NS = 1e9 / os.sysconf("SC_CLK_TCK")
_COUNTED_LATE_NS = 300_000
"""How much CPU time of the harness's group may be counted late, or belong to its server."""
_RESUMED_NS = 30_000
"""How much CPU time a descendant may use to be resumed and stopped: 11 to 31 us on two cores."""
_IDLE = slice(4, 6)
"""The fields of a line of /proc/stat with the ticks in which a core was idle."""


ThreadTimes = dict[int, tuple[int, int]]
"""Thread id -> how many ns it has run, and how many ns it has waited for a core."""


def thread_times(pid: int) -> ThreadTimes:
    """Return the times of a process's living threads; {} if they are unknown."""
    found = {}
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - names only, and fast
            ran, waited, _ = Path(f"/proc/{pid}/task/{thread}/schedstat").read_text().split()
            found[int(thread)] = int(ran), int(waited)
    except (OSError, ValueError):
        return {}
    return found


def own_wait_ns() -> int:
    """Return how long this thread has waited for a core; 0 if it is unknown."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_bytes().split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def waited_ns(before: ThreadTimes, after: ThreadTimes) -> int:
    """Return how long the threads that still exist have waited between two readings, added up."""
    start = sum(waited for thread, (_, waited) in before.items() if thread in after)
    return sum(waited for _, waited in after.values()) - start


def computing(before: ThreadTimes, after: ThreadTimes) -> tuple[int, ...]:
    """Return the threads that have run, at most one per core: those that ran longest.

    A thread that ran for only a short part of the call counts too, because the others wait for it.
    """
    ran = {thread: now - before.get(thread, (0, 0))[0] for thread, (now, _) in after.items()}
    most = sorted(ran, key=lambda thread: ran[thread], reverse=True)[: len(CORES)]
    return tuple(thread for thread in ran if thread in most and ran[thread] > 0)


class Preparation:
    """Measures the CPU time in which a candidate reads a request, with that of its descendants.

    It is that of the candidate and of its living descendants, without what stopping these takes,
    and what the harness's group has used beyond that and beyond this process. The group also
    counts descendants that have ended, but late, and other processes of the harness: some of it is
    left out if no process or thread has begun or ended.
    """

    def __init__(self, candidate: CandidateProcess) -> None:
        self.candidate = candidate
        self.used_before = candidate.used_at
        self.newest = newest_process()
        self.begin = self._sample()

    def used_ns(self) -> int:
        """Return the CPU time in ns since the creation, once the candidate is frozen."""
        pairs = zip(self._sample(), self.begin, strict=True)
        own, group, judge = (after - before for after, before in pairs)
        living = self._used_by_living()
        worked = sum(max(0, used - _RESUMED_NS) for used in living)
        others = group - own - judge - sum(living)
        ended = newest_process() != self.newest or self.used_before.keys() - self.candidate.used_at
        left_out = 0 if ended else _COUNTED_LATE_NS
        return own + max(worked, sum(living) - _COUNTED_LATE_NS) + max(0, others - left_out)

    def _used_by_living(self) -> list[int]:
        """Return the CPU time since the creation of each descendant that is alive."""
        before, now = self.used_before, self.candidate.used_at
        children = now.keys() - {self.candidate.pid}
        return [max(0, now[pid] - before.get(pid, 0)) for pid in children]

    def _sample(self) -> tuple[int, int, int]:
        os.sched_yield()  # so that the group counts what this thread has used
        return self.candidate.cpu_ns(), int(group_cpu_ns() or 0), time.process_time_ns()


class OtherProcesses:
    """Measures how much other processes use the harness's cores after its creation."""

    def __init__(self) -> None:
        self.cores = CORES
        self.begin = self._sample()

    def used_ns(self) -> float:
        """Return a lower bound of their CPU time; 0 if it is unknown."""
        now = self._sample()
        if now is None or self.begin is None:
            return 0.0
        wall, idle, own = (after - before for before, after in zip(self.begin, now, strict=True))
        counted_late = len(self.cores) * _TICK_NS
        return max(0.0, wall * len(self.cores) - idle - own - counted_late)

    def _sample(self) -> tuple[float, float, float] | None:
        """Return the time, the idle time of the cores, and the harness's own CPU time."""
        try:
            own, lines = group_cpu_ns(), _STAT.read_text().splitlines()
        except OSError:
            return None
        if own is None:
            return None
        names = {f"cpu{core}" for core in self.cores}
        words = (line.split() for line in lines if line.startswith("cpu"))
        idle = sum(sum(map(int, each[_IDLE])) for each in words if each[0] in names)
        return float(time.monotonic_ns()), idle * _TICK_NS, float(own)


@contextmanager
def spread(threads: Iterable[int], main: int, before: ThreadTimes) -> Iterator[Callable[[], None]]:
    """Give each of these threads of the process `main` a core in the block, if it is in `before`.

    A candidate that chose cores keeps them. The first thread gets a core on which this thread does
    not run now. The block calls the function that it gets as soon as the threads run: the main
    thread may then run on every core, because threads that it starts may run where it may. What
    another thread starts in the block may run on every core after it.
    """
    chosen = [thread for thread in threads if thread in before]
    moved: list[int] = []
    try:
        if 1 < len(chosen) <= len(CORES) <= _CORES_MOST and all(map(_is_free, chosen)):
            here = _own_core()
            cores = sorted(CORES, key=lambda core: (core == here, core))
            for thread, core in zip(chosen, cores, strict=False):
                os.sched_setaffinity(thread, {core})
                moved.append(thread)
    except OSError:
        pass  # it has ended, or belongs to another user
    try:
        yield lambda: _free({main}.intersection(moved))
    finally:
        if moved:
            _free((thread_times(main).keys() - before.keys()).union(moved))


def _own_core() -> int:
    return int(Path("/proc/thread-self/stat").read_bytes().rpartition(b")")[2].split()[36])


def _is_free(thread: int) -> bool:
    return os.sched_getaffinity(thread) == CORES


def _free(threads: Iterable[int]) -> None:
    for thread in threads:
        with suppress(OSError):  # it has ended
            os.sched_setaffinity(thread, CORES)
