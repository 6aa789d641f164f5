"""Submitted task zips; a lease ensures that at most one process handles each."""

from datetime import datetime, timedelta
from typing import Protocol

from bot.domain.ids import PersonId, ReleaseId
from bot.domain.publication import NewRelease, Publication, PublicationSummary


class Releases(Protocol):
    """Tasks waiting to be published, each held by one process under a lease."""

    async def add(self, release: NewRelease) -> ReleaseId:
        """Store it until it is finished."""

    async def claim(
        self, door: str, owner: str, lease: timedelta, limit: int = 1
    ) -> tuple[Publication, ...]:
        """Claim those that no process holds, oldest first; each claim counts as a try."""

    async def keep(self, owner: str, lease: timedelta) -> tuple[ReleaseId, ...]:
        """Renew the owner's leases; return what it still holds."""

    async def note(
        self,
        release: ReleaseId,
        owner: str,
        *,
        state: str | None = None,
        place: str | None = None,
    ) -> bool:
        """Store the given JSON values; False when another owner has taken over."""

    async def finish(self, release: ReleaseId, owner: str) -> bool:
        """Delete it, since everything was reported; False when another owner has taken over."""

    async def end(self, release: ReleaseId, owner: str) -> bool:
        """Keep its state for readers, delete the zip; False when another owner has taken over."""

    async def told(self, door: str, release: ReleaseId) -> PublicationSummary | None:
        """Return the state of a publication that was not deleted."""

    async def told_to(self, door: str, person: PersonId) -> tuple[PublicationSummary, ...]:
        """Return the states of a person's publications, newest first, at most a hundred."""

    async def forget(self, ended_before: datetime) -> int:
        """Delete what ended before this time; return how many."""

    async def let_go(self, owner: str) -> int:
        """Release what the owner holds, as if it had not tried; return how many."""
