"""Task zips that are being checked, in Postgres."""

from datetime import datetime, timedelta

from asyncpg import Record

from bot.domain.errors import StoreError
from bot.domain.ids import PersonId, ReleaseId
from bot.domain.publication import NewRelease, Publication, PublicationSummary
from bot.ports import Clock
from bot.store.postgres.database import Database


class PostgresReleases:
    """Publications by number; each is held under a lease."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def add(self, release: NewRelease) -> ReleaseId:
        row = await self._database.row(
            "releases.add",
            release.door,
            release.person,
            release.zip,
            release.wish,
            release.place,
        )
        if row is None:
            raise StoreError("the release could not be stored")
        return ReleaseId(row["id"])

    async def claim(
        self, door: str, owner: str, lease: timedelta, limit: int = 1
    ) -> tuple[Publication, ...]:
        now = self._clock.now()
        found = await self._database.rows("releases.claim", door, owner, now, now + lease, limit)
        return tuple(sorted(map(_release, found), key=lambda one: one.id))

    async def keep(self, owner: str, lease: timedelta) -> tuple[ReleaseId, ...]:
        now = self._clock.now()
        kept = await self._database.rows("releases.keep", owner, now, now + lease)
        return tuple(sorted(ReleaseId(row["id"]) for row in kept))

    async def note(
        self,
        release: ReleaseId,
        owner: str,
        *,
        state: str | None = None,
        place: str | None = None,
    ) -> bool:
        row = await self._database.row("releases.note", release, owner, state, place)
        return row is not None

    async def finish(self, release: ReleaseId, owner: str) -> bool:
        return await self._database.row("releases.finish", release, owner) is not None

    async def end(self, release: ReleaseId, owner: str) -> bool:
        now = self._clock.now()
        return await self._database.row("releases.end", release, owner, now) is not None

    async def told(self, door: str, release: ReleaseId) -> PublicationSummary | None:
        row = await self._database.row("releases.told", release, door)
        return None if row is None else _note(row)

    async def told_to(self, door: str, person: PersonId) -> tuple[PublicationSummary, ...]:
        return tuple(map(_note, await self._database.rows("releases.told_to", person, door)))

    async def forget(self, ended_before: datetime) -> int:
        return len(await self._database.rows("releases.forget", ended_before))

    async def let_go(self, owner: str) -> int:
        return len(await self._database.rows("releases.let_go", owner))


def _release(row: Record) -> Publication:
    return Publication(
        id=ReleaseId(row["id"]),
        person=PersonId(row["person"]),
        zip=bytes(row["zip"]),
        wish=row["wish"],
        place=row["place"],
        tries=row["tries"],
        state=row["state"],
    )


def _note(row: Record) -> PublicationSummary:
    return PublicationSummary(
        id=ReleaseId(row["id"]),
        person=PersonId(row["person"]),
        wish=row["wish"],
        state=row["state"],
        tries=row["tries"],
        ended_at=row["ended_at"],
    )
