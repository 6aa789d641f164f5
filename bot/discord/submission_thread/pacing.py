"""How often a live message is edited, and how long a failing one is tried again."""

import asyncio
import time
from dataclasses import dataclass, field

LONGEST_S = 20.0
"""The longest wait between two tries, so that nobody waits a minute once Discord is back."""
OUT_AFTER = 3
"""Failures in a row, of whichever submissions, after which Discord is taken to be away."""


@dataclass(slots=True)
class OutageBackoff:
    """Counts failures in a row; while Discord is away, one submission at a time tries it."""

    failures: int = 0
    next_try: float = 0.0

    @property
    def is_out(self) -> bool:
        """Whether Discord is taken to be away."""
        return self.failures >= OUT_AFTER

    def wait_s(self) -> float:
        """Seconds until somebody may try; 0 is leave for one try, and the next one has to wait."""
        if not self.is_out:
            return 0.0
        now = time.monotonic()
        if now < self.next_try:
            return self.next_try - now
        self.next_try = now + pause_s(self.failures)
        return 0.0

    def failed(self) -> None:
        """One more try in a row has failed."""
        self.failures += 1

    def succeeded(self) -> bool:
        """Something was shown; gives whether that ends an outage."""
        was_out, self.failures = self.is_out, 0
        return was_out


def pause_s(failures: int) -> float:
    """Seconds to wait after this many failures in a row: 2, 4, 8, 16, then the longest."""
    return min(LONGEST_S, 2.0 ** min(failures, 10))


EDITS_PER_S = 15.0
"""Of all live messages together; Discord allows a bot 50 requests a second in all."""
EVERY_S = 1.5
"""Between two edits of one message: a channel takes five messages or edits in five seconds."""


@dataclass(slots=True)
class EditRateLimiter:
    """Gives each edit its time."""

    next_edit: float = 0.0
    last: dict[int, float] = field(default_factory=dict)

    def wait_for(self, message: int) -> float:
        """Seconds until this message may be edited again."""
        return max(0.0, self.last.get(message, 0.0) + EVERY_S - time.monotonic())

    async def turn(self, message: int) -> None:
        """Wait for the turn of an edit among all of them."""
        now = time.monotonic()
        at = max(now, self.next_edit)
        self.next_edit = at + 1 / EDITS_PER_S
        self.last[message] = at
        if at > now:
            await asyncio.sleep(at - now)

    def forget(self, message: int) -> None:
        """The message will not be edited any more."""
        self.last.pop(message, None)
