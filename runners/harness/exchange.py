"""One order to a candidate and its answer, as the judge timed it."""

from collections.abc import Callable
from dataclasses import dataclass

from runners.harness.channel import Reply


@dataclass(frozen=True, slots=True)
class Exchange:
    """One order and its answer; the window closed when the bytes were the judge's own."""

    window_ns: int
    reply: Reply
    cpu_ns: int = 0
    """What the candidate's threads used meanwhile; not taken on a GPU."""


@dataclass(frozen=True, slots=True)
class Window:
    """What the judge does inside a window, at both of its ends.

    `open` makes the input visible after the clock was read; `close` makes the answer the
    judge's own before the clock is read again.
    """

    open: Callable[[], None]
    close: Callable[[], None]
