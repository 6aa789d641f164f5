"""How often a live message is edited, and how long to wait after failures."""

import asyncio
import time
from dataclasses import dataclass, field

LONGEST_S = 20.0
"""The longest wait between two attempts, so that displays resume soon after an outage."""
OUT_AFTER = 3
"""After this many failures in a row, of any submissions, Discord is considered unavailable."""


@dataclass(slots=True)
class OutageBackoff:
    """Counts failures in a row; during an outage, only one submission at a time tries again."""

    failures: int = 0
    next_try: float = 0.0

    @property
    def is_out(self) -> bool:
        """Return whether Discord is considered unavailable."""
        return self.failures >= OUT_AFTER

    def wait_s(self) -> float:
        """Return the seconds until the next attempt; 0 permits one, and the next must wait."""
        if not self.is_out:
            return 0.0
        now = time.monotonic()
        if now < self.next_try:
            return self.next_try - now
        self.next_try = now + pause_s(self.failures)
        return 0.0

    def failed(self) -> None:
        """Count one more failure in a row."""
        self.failures += 1

    def succeeded(self) -> bool:
        """Count a success; return whether it ends an outage."""
        was_out, self.failures = self.is_out, 0
        return was_out


def pause_s(failures: int) -> float:
    """Return the seconds to wait after failures in a row: 2, 4, 8, 16, then the longest."""
    return min(LONGEST_S, 2.0 ** min(failures, 10))


EDITS_PER_S = 15.0
"""Edits per second of all live messages; Discord allows a bot 50 requests per second in all."""
EVERY_S = 1.5
"""Seconds between two edits of one message: a channel accepts five messages or edits in 5 s."""


@dataclass(slots=True)
class EditRateLimiter:
    """Limits the rate of edits, per message and overall."""

    next_edit: float = 0.0
    last: dict[int, float] = field(default_factory=dict)

    def wait_for(self, message: int) -> float:
        """Return the seconds until this message may be edited again."""
        return max(0.0, self.last.get(message, 0.0) + EVERY_S - time.monotonic())

    async def turn(self, message: int) -> None:
        """Wait for the next edit allowed overall."""
        now = time.monotonic()
        at = max(now, self.next_edit)
        self.next_edit = at + 1 / EDITS_PER_S
        self.last[message] = at
        if at > now:
            await asyncio.sleep(at - now)

    def forget(self, message: int) -> None:
        """Drop a message that will not be edited again."""
        self.last.pop(message, None)
