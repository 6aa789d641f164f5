"""What people asked a door for: at most one process of the door does it at a time, by leases."""

from datetime import timedelta
from typing import Protocol

from bot.domain.interaction import Asked, Unfinished


class Interactions(Protocol):
    """Commands, clicks and forms by id, kept until they are done."""

    async def claim(self, asked: Asked, owner: str, lease: timedelta) -> bool:
        """Keep it, and take it; False when it is done, or another owner holds it."""

    async def unfinished(
        self, door: str, owner: str, lease: timedelta, silent: timedelta
    ) -> tuple[Unfinished, ...]:
        """Take a few that nobody has held for that long, oldest first; each counts as a try."""

    async def keep(self, interaction: str, owner: str, lease: timedelta) -> bool:
        """Prolong a lease, also one that ran out; False when another owner has taken over."""

    async def leave(self, interaction: str, owner: str, pause: timedelta) -> bool:
        """Leave it to whoever comes after that time, as if this owner had not tried."""

    async def finish(self, interaction: str, owner: str) -> bool:
        """It is done: token and request are deleted. False when another owner has taken over."""

    async def forget(self) -> int:
        """Delete tokens that are no longer valid, and what was done long ago; gives how many."""
