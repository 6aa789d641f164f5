"""Spaces the edits of live messages, so that Discord never has to refuse one."""

import asyncio
import time
from dataclasses import dataclass, field

EDITS_PER_S = 15.0
"""Of all live messages together; Discord allows a bot 50 requests a second in all."""
EVERY_S = 1.5
"""Between two edits of one message: a channel takes five messages or edits in five seconds."""


@dataclass(slots=True)
class Pace:
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
