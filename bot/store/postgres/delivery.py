"""Notifications, displays and interactions in Postgres."""

from collections.abc import Sequence
from datetime import timedelta

from asyncpg import Record

from bot.domain import records
from bot.domain.ids import BoardId, JobId, NotificationId, PersonId, SubmissionId, TaskVersionId
from bot.domain.notifications import Delivery, Notification, NotificationKind
from bot.domain.submission import Display
from bot.ports import Clock
from bot.store.postgres.database import Connection, Database, query, storable


class PostgresListeners:
    """A row for each addressee and kind."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def listen(self, addressee: str, kinds: frozenset[NotificationKind]) -> None:
        async with self._database.transaction() as connection:
            await connection.execute(query("news.unlisten"), addressee)
            await connection.execute(query("news.listen"), addressee, sorted(kinds))

    async def kinds(self, addressee: str) -> frozenset[NotificationKind]:
        found = await self._database.rows("news.kinds", addressee)
        return frozenset(NotificationKind(row["kind"]) for row in found)

    async def to(self, kind: NotificationKind) -> tuple[str, ...]:
        found = await self._database.rows("news.listeners", kind.value)
        return tuple(row["addressee"] for row in found)


class PostgresOutbox:
    """Notifications by key; each is held under a lease."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def unannounced(self, limit: int = 100) -> tuple[records.UnannouncedScore, ...]:
        return tuple(
            records.UnannouncedScore(
                job=JobId(row["job"]),
                submission=SubmissionId(row["submission"]),
                person=PersonId(row["person"]),
                board=BoardId(row["board"]),
                task_version=TaskVersionId(row["task_version"]),
                gpu=row["gpu"],
            )
            for row in await self._database.rows("news.untold", limit)
        )

    async def settle(self, job: JobId, news: Sequence[Notification]) -> bool:
        async with self._database.transaction() as connection:
            if await connection.fetchval(query("news.settle"), job) is None:
                return False
            await self._put(connection, news)
        return True

    async def put(self, news: Sequence[Notification]) -> int:
        async with self._database.connection() as connection:
            return await self._put(connection, news)

    async def _put(self, connection: Connection, news: Sequence[Notification]) -> int:
        if not news:
            return 0
        kept = await connection.fetch(
            query("news.put"),
            [storable(each.key) for each in news],
            [each.kind.value for each in news],
            [storable(each.addressee) for each in news],
            [each.board for each in news],
            [storable(each.text) for each in news],
            self._clock.now(),
        )
        return len(kept)

    async def claim(
        self, door: str, owner: str, lease: timedelta, limit: int = 1
    ) -> tuple[Delivery, ...]:
        now = self._clock.now()
        found = await self._database.rows("news.claim", door, owner, now, now + lease, limit)
        return tuple(sorted(map(_delivery, found), key=lambda each: each.id))

    async def mark_sent(self, news: NotificationId, owner: str) -> bool:
        now = self._clock.now()
        return await self._database.row("news.done", news, owner, now, None) is not None

    async def mark_refused(self, news: NotificationId, owner: str, why: str) -> bool:
        now = self._clock.now()
        return await self._database.row("news.done", news, owner, now, why) is not None

    async def retry_later(self, news: NotificationId, owner: str, wait: timedelta) -> bool:
        due = self._clock.now() + wait
        return await self._database.row("news.again", news, owner, due) is not None

    async def forget(self, age: timedelta) -> int:
        return len(await self._database.rows("news.forget", self._clock.now() - age))


def _delivery(row: Record) -> Delivery:
    news = Notification(
        key=row["key"],
        kind=NotificationKind(row["kind"]),
        addressee=row["addressee"],
        board=BoardId(row["board"]),
        text=row["text"],
    )
    return Delivery(NotificationId(row["id"]), news, row["tries"])


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
        return tuple(sorted(map(_display, found), key=lambda one: one.submission))

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
        return None if row is None else _display(row)


def _display(row: Record) -> Display:
    """Convert a row of `displays` with its submission's person."""
    submission, person = SubmissionId(row["submission"]), PersonId(row["person"])
    return Display(submission, person, row["door"], row["place"], row["claims"])


class PostgresInteractions:
    """Commands, clicks and forms by id; each is held under a lease."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def claim(self, asked: records.InteractionRequest, owner: str, lease: timedelta) -> bool:
        now = self._clock.now()
        values = asked.id, asked.door, asked.request, asked.token, asked.at
        row = await self._database.row("interactions.claim", *values, owner, now, now + lease)
        return row is not None

    async def unfinished(
        self, door: str, owner: str, lease: timedelta, silent: timedelta
    ) -> tuple[records.OpenRequest, ...]:
        now = self._clock.now()
        since = now - records.TOKEN_TTL
        found = await self._database.rows(
            "interactions.unfinished", door, owner, now - silent, now + lease, since
        )
        requests = [
            records.OpenRequest(
                row["id"], row["request"], row["token"], row["asked_at"], row["tries"]
            )
            for row in found
        ]
        return tuple(sorted(requests, key=lambda each: each.at))

    async def keep(self, interaction: str, owner: str, lease: timedelta) -> bool:
        return await self._changed("interactions.keep", interaction, owner, lease)

    async def leave(self, interaction: str, owner: str, pause: timedelta) -> bool:
        return await self._changed("interactions.leave", interaction, owner, pause)

    async def finish(self, interaction: str, owner: str) -> bool:
        return await self._changed("interactions.finish", interaction, owner, timedelta())

    async def _changed(self, name: str, interaction: str, owner: str, after: timedelta) -> bool:
        now = self._clock.now()
        return await self._database.row(name, interaction, owner, now + after) is not None

    async def forget(self) -> int:
        now = self._clock.now()
        found = await self._database.rows(
            "interactions.forget", now - records.TOKEN_TTL, now - records.REQUEST_TTL
        )
        return len(found)
