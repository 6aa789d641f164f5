"""Task zips which are being proven: at most one process of a door at a time, by leases."""

from datetime import datetime, timedelta
from typing import Protocol

from bot.domain.ids import PersonId, ReleaseId
from bot.domain.publication import NewRelease, Publication, PublicationSummary


class Releases(Protocol):
    """Tasks that wait to be published, each held by one process under a lease."""

    async def add(self, release: NewRelease) -> ReleaseId:
        """Keep it until it is finished."""

    async def claim(
        self, door: str, owner: str, lease: timedelta, limit: int = 1
    ) -> tuple[Publication, ...]:
        """Take those that nobody holds, oldest first; each claim counts as a try."""

    async def keep(self, owner: str, lease: timedelta) -> tuple[ReleaseId, ...]:
        """Prolong the owner's leases; gives what it still holds."""

    async def note(
        self,
        release: ReleaseId,
        owner: str,
        *,
        state: str | None = None,
        place: str | None = None,
    ) -> bool:
        """Store what is given, both JSON; False when another owner has taken over."""

    async def finish(self, release: ReleaseId, owner: str) -> bool:
        """Forget it: everything is told. False when another owner has taken over."""

    async def end(self, release: ReleaseId, owner: str) -> bool:
        """Keep its state for readers, and drop the zip; False when another owner has taken over."""

    async def told(self, door: str, release: ReleaseId) -> PublicationSummary | None:
        """What is told of a release that is not finished."""

    async def told_to(self, door: str, person: PersonId) -> tuple[PublicationSummary, ...]:
        """What is told of a person's releases, the newest first, at most a hundred."""

    async def forget(self, ended_before: datetime) -> int:
        """Forget what ended before this time; gives how many."""

    async def let_go(self, owner: str) -> int:
        """Give back what the owner holds, as if it had not tried; gives how many."""
