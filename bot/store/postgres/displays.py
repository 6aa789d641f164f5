"""Who shows which submission, in Postgres."""

from datetime import timedelta

from bot.domain.display import Display
from bot.domain.ids import SubmissionId
from bot.ports import Clock
from bot.store.postgres import rows
from bot.store.postgres.database import Database


class PostgresDisplays:
    """Displays by submission; each is held under a lease."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def claim(
        self, door: str, owner: str, lease: timedelta, limit: int = 1000
    ) -> tuple[Display, ...]:
        now = self._clock.now()
        found = await self._database.rows("displays.claim", door, owner, now, now + lease, limit)
        return tuple(sorted(map(rows.display, found), key=lambda one: one.submission))

    async def keep(self, owner: str, lease: timedelta) -> tuple[SubmissionId, ...]:
        now = self._clock.now()
        kept = await self._database.rows("displays.keep", owner, now, now + lease)
        return tuple(sorted(SubmissionId(row["submission"]) for row in kept))

    async def note(self, submission: SubmissionId, owner: str, place: str) -> bool:
        return await self._database.row("displays.note", submission, owner, place) is not None

    async def finish(self, submission: SubmissionId, owner: str, place: str) -> bool:
        now = self._clock.now()
        row = await self._database.row("displays.finish", submission, owner, place, now)
        return row is not None

    async def let_go(self, owner: str) -> int:
        return len(await self._database.rows("displays.let_go", owner))

    async def find(self, submission: SubmissionId) -> Display | None:
        row = await self._database.row("displays.find", submission)
        return None if row is None else rows.display(row)
