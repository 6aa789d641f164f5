"""One order to a candidate and its answer, as the judge timed it."""

from dataclasses import dataclass
from typing import Protocol

from runners.harness.channel import Reply


@dataclass(frozen=True, slots=True)
class Exchange:
    """One order and its answer; the window closed when the bytes were the judge's own."""

    window_ns: float
    reply: Reply
    cpu_ns: int = 0
    """What the candidate's threads used meanwhile; not taken on a GPU."""
    told_ns: float = 0.0
    """On a GPU: the last part of the window, in which all that lies there had been captured."""
    late: bool = False
    """On a GPU: the call should have been queued ahead and was not in time, so that launches lie
    in its window, and nobody knew where to look for its output."""


class Turn(Protocol):
    """One call's way over to a candidate on a GPU, as the judge drives it."""

    patience_s: float
    """How long to wait until the candidate has queued its work, before the input is released."""
    told: bool
    """Whether the candidate's last frame is a part of the answer: the window closes after it."""

    def queued(self, first: Reply | None) -> None:
        """Take note of where the output will lie; None when the candidate was too late to say."""

    def release(self) -> None:
        """Open the window and make the input visible; the candidate's work follows by itself."""

    def take(self, last: Reply) -> None:
        """Make what of an answer that is `told` lies on the host the judge's own.

        Then let the window close.
        """

    def over(self) -> bool:
        """Whether the answer is the judge's own."""

    def window_ns(self) -> float:
        """How long that took, in nanoseconds."""

    def told_ns(self) -> float:
        """For how long of it all was captured that lies on the GPU."""
