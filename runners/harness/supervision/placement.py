"""Gives each computing thread of a frozen candidate a core of its own for its next call.

On a busy machine no core is idle, so Linux wakes a thread where it last ran. Two threads on one
core then stay there for hundreds of calls, which take twice as long as those of a candidate whose
threads happen to be apart. Threads may run everywhere again as soon as they are awake.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

CORES = frozenset(os.sched_getaffinity(0))
_CORES_MOST = 16
"""On a machine with more cores some are idle, and setting all would take too long."""


@contextmanager
def spread(threads: Iterable[int]) -> Iterator[None]:
    """Wake these threads, in the block, on different cores; a candidate's own choice stays."""
    chosen = list(threads)
    moved: list[int] = []
    try:
        if 1 < len(chosen) <= len(CORES) <= _CORES_MOST and all(map(_is_free, chosen)):
            for thread, core in zip(chosen, sorted(CORES), strict=False):
                os.sched_setaffinity(thread, {core})
                moved.append(thread)
    except OSError:
        pass  # it has ended, or belongs to another user
    try:
        yield
    finally:
        for thread in moved:
            _free(thread)


def _is_free(thread: int) -> bool:
    return os.sched_getaffinity(thread) == CORES


def _free(thread: int) -> None:
    try:
        os.sched_setaffinity(thread, CORES)
    except OSError:
        return  # it has ended
