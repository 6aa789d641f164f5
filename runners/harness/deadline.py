"""A moment by which something must have ended."""

import time
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class Deadline:
    """A point on the monotonic clock, in seconds."""

    end: float

    @classmethod
    def after(cls, seconds: float) -> Self:
        """The moment `seconds` from now."""
        return cls(time.monotonic() + seconds)

    @property
    def remaining(self) -> float:
        """Seconds left, negative when it has passed."""
        return self.end - time.monotonic()


@dataclass(frozen=True, slots=True)
class TimeBudget:
    """How long timing may take: a kernel that runs past `deadline` has timed out.

    No round is begun that would not end within `share`, so that other workloads have theirs.
    """

    deadline: Deadline
    share: Deadline
