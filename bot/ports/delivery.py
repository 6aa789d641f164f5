"""Who wants to be told of what, what is to be told, and which process delivers it."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

from bot.domain.ids import JobId, NewsId
from bot.domain.notifications import Letter, News, NewsKind
from bot.domain.records import UnannouncedScore


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

    async def settle(self, job: JobId, news: Sequence[News]) -> bool:
        """Keep the news of a score and forget the score, both or neither; False when it was."""

    async def put(self, news: Sequence[News]) -> int:
        """Keep news whose keys were never kept; gives how many."""

    async def claim(
        self, door: str, owner: str, lease: timedelta, limit: int = 1
    ) -> tuple[Letter, ...]:
        """Take due news for addressees of a door that nobody holds, oldest first."""

    async def sent(self, news: NewsId, owner: str) -> bool:
        """It is delivered; False when another owner has taken over."""

    async def refused(self, news: NewsId, owner: str, why: str) -> bool:
        """It will never be delivered; False when another owner has taken over."""

    async def again(self, news: NewsId, owner: str, wait: timedelta) -> bool:
        """Give it back, to be tried later; False when another owner has taken over."""

    async def forget(self, age: timedelta) -> int:
        """Remove what was done with as long ago; gives how many."""
