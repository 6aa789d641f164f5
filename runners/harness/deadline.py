"""Deadlines on the monotonic clock."""

import time
from dataclasses import dataclass
from typing import Self


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


@dataclass(frozen=True, slots=True)
class TimeBudget:
    """How long the timing of one workload may take.

    A kernel that runs past `deadline` has timed out. A round that would end after `share` does not
    start, which leaves time for the other workloads.
    """

    deadline: Deadline
    share: Deadline
