"""Who shows which submission: at most one process of a door at a time, by leases."""

from datetime import timedelta
from typing import Protocol

from bot.domain.display import Display
from bot.domain.ids import SubmissionId


class Displays(Protocol):
    """Where doors show submissions, each held by one process under a lease."""

    async def claim(
        self, door: str, owner: str, lease: timedelta, limit: int = 1000
    ) -> tuple[Display, ...]:
        """Take unfinished displays that nobody holds, oldest first."""

    async def keep(self, owner: str, lease: timedelta) -> tuple[SubmissionId, ...]:
        """Prolong the owner's leases; gives what it still holds."""

    async def note(self, submission: SubmissionId, owner: str, place: str) -> bool:
        """Write down how far the display has got; False when another owner has taken over."""

    async def finish(self, submission: SubmissionId, owner: str, place: str) -> bool:
        """Everything is shown; False when another owner has taken over."""

    async def let_go(self, owner: str) -> int:
        """Give back what the owner holds, for the next one to take at once; gives how many."""

    async def find(self, submission: SubmissionId) -> Display | None:
        """The display of a submission, finished or not."""
