"""Notifications, displayed submissions, and what people asked a door for."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

from bot.domain.ids import JobId, NewsId, SubmissionId
from bot.domain.interaction import InteractionRequest, Unfinished
from bot.domain.notifications import Delivery, NewsKind, Notification
from bot.domain.records import UnannouncedScore
from bot.domain.submission import Display


class Listeners(Protocol):
    """Addressees, such as `discord:17`, and the kinds of news that each has asked for."""

    async def listen(self, addressee: str, kinds: frozenset[NewsKind]) -> None:
        """Tell this addressee of just these kinds from now on."""

    async def kinds(self, addressee: str) -> frozenset[NewsKind]:
        """What this addressee is told of."""

    async def to(self, kind: NewsKind) -> tuple[str, ...]:
        """Who is told of this kind, in order."""


class Outbox(Protocol):
    """News that waits to be delivered, each held by one process under a lease."""

    async def untold(self, limit: int = 100) -> tuple[UnannouncedScore, ...]:
        """Scores that are not settled, in the order in which they were accepted.

        A score is put here by the statement which accepts it, so a kill loses none.
        """

    async def settle(self, job: JobId, news: Sequence[Notification]) -> bool:
        """Keep the news of a score and forget the score, both or neither; False when it was."""

    async def put(self, news: Sequence[Notification]) -> int:
        """Keep news whose keys were never kept; gives how many."""

    async def claim(
        self, door: str, owner: str, lease: timedelta, limit: int = 1
    ) -> tuple[Delivery, ...]:
        """Take due news for addressees of a door that nobody holds, oldest first."""

    async def sent(self, news: NewsId, owner: str) -> bool:
        """It is delivered; False when another owner has taken over."""

    async def refused(self, news: NewsId, owner: str, why: str) -> bool:
        """It will never be delivered; False when another owner has taken over."""

    async def again(self, news: NewsId, owner: str, wait: timedelta) -> bool:
        """Give it back, to be tried later; False when another owner has taken over."""

    async def forget(self, age: timedelta) -> int:
        """Remove what was done with as long ago; gives how many."""


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


class Interactions(Protocol):
    """Commands, clicks and forms by id, kept until they are done."""

    async def claim(self, asked: InteractionRequest, owner: str, lease: timedelta) -> bool:
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
