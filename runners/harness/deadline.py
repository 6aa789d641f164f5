"""Deadlines on the monotonic clock."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Self

LATE_S = 2.0
"""How much later than a rival's deadline the alarm comes that ends its steps, in seconds."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """A point on the monotonic clock, in seconds."""

    end: float

    @classmethod
    def after(cls, seconds: float) -> Self:
        """Return the deadline `seconds` from now."""
        return cls(time.monotonic() + seconds)

    @property
    def remaining(self) -> float:
        """Seconds left; negative after the deadline."""
        return self.end - time.monotonic()


@contextmanager
def ended_by_alarm(deadline: Deadline) -> Iterator[None]:
    """Let this process's alarm come `LATE_S` after the deadline, if it would come later.

    After the block it comes when it would have come without it.
    """
    begin, left_s = time.monotonic(), signal.getitimer(signal.ITIMER_REAL)[0]
    sooner = left_s > (own_s := max(0.001, deadline.remaining + LATE_S))
    if sooner:
        signal.setitimer(signal.ITIMER_REAL, own_s)
    try:
        yield
    finally:
        if sooner:
            left_s -= time.monotonic() - begin
            signal.setitimer(signal.ITIMER_REAL, max(0.001, left_s))


@dataclass(frozen=True, slots=True)
class TimeBudget:
    """How long the timing of one workload may take.

    A kernel that runs past `deadline` has timed out. A round that would end after `share` does not
    start, which leaves time for the other workloads.
    """

    deadline: Deadline
    share: Deadline
