"""Notifications, displays and interactions in Postgres."""

from collections.abc import Sequence
from datetime import timedelta

from asyncpg import Record

from bot.domain import records
from bot.domain.ids import BoardId, JobId, NotificationId, PersonId, SubmissionId, TaskVersionId
from bot.domain.notifications import Delivery, Notification, NotificationKind
from bot.domain.submission import Display, KeptAnswer, ThreadKey, UntoldOutcome
from bot.ports import Clock
from bot.store.postgres.database import Connection, Database, query, storable


class PostgresListeners:
    """A row for each addressee and kind."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def listen(self, addressee: str, kinds: frozenset[NotificationKind]) -> None:
        async with self._database.transaction() as connection:
            await connection.execute(query("notifications.unlisten"), addressee)
            await connection.execute(query("notifications.listen"), addressee, sorted(kinds))

    async def kinds(self, addressee: str) -> frozenset[NotificationKind]:
        found = await self._database.rows("notifications.kinds", addressee)
        return frozenset(NotificationKind(row["kind"]) for row in found)

    async def to(self, kind: NotificationKind) -> tuple[str, ...]:
        found = await self._database.rows("notifications.listeners", kind.value)
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
            for row in await self._database.rows("notifications.unannounced", limit)
        )

    async def mark_announced(self, job: JobId, notifications: Sequence[Notification]) -> bool:
        async with self._database.transaction() as connection:
            if await connection.fetchval(query("notifications.mark_announced"), job) is None:
                return False
            await self._put(connection, notifications)
        return True

    async def put(self, notifications: Sequence[Notification]) -> int:
        async with self._database.connection() as connection:
            return await self._put(connection, notifications)

    async def _put(self, connection: Connection, notifications: Sequence[Notification]) -> int:
        if not notifications:
            return 0
        kept = await connection.fetch(
            query("notifications.put"),
            [storable(each.key) for each in notifications],
            [each.kind.value for each in notifications],
            [storable(each.addressee) for each in notifications],
            [each.board for each in notifications],
            [storable(each.text) for each in notifications],
            self._clock.now(),
        )
        return len(kept)

    async def claim(
        self, door: str, owner: str, lease: timedelta, limit: int = 1
    ) -> tuple[Delivery, ...]:
        now = self._clock.now()
        found = await self._database.rows(
            "notifications.claim", door, owner, now, now + lease, limit
        )
        return tuple(sorted(map(_delivery, found), key=lambda each: each.id))

    async def mark_sent(self, notification: NotificationId, owner: str) -> bool:
        now = self._clock.now()
        return (
            await self._database.row("notifications.finish", notification, owner, now, None)
            is not None
        )

    async def mark_refused(self, notification: NotificationId, owner: str, why: str) -> bool:
        now = self._clock.now()
        return (
            await self._database.row("notifications.finish", notification, owner, now, why)
            is not None
        )

    async def retry_later(self, notification: NotificationId, owner: str, wait: timedelta) -> bool:
        due = self._clock.now() + wait
        return (
            await self._database.row("notifications.retry_later", notification, owner, due)
            is not None
        )

    async def delete_finished(self, age: timedelta) -> int:
        return len(
            await self._database.rows("notifications.delete_finished", self._clock.now() - age)
        )


def _delivery(row: Record) -> Delivery:
    notification = Notification(
        key=row["key"],
        kind=NotificationKind(row["kind"]),
        addressee=row["addressee"],
        board=None if row["board"] is None else BoardId(row["board"]),
        text=row["text"],
    )
    return Delivery(NotificationId(row["id"]), notification, row["tries"])


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

    async def renew(self, owner: str, lease: timedelta) -> tuple[SubmissionId, ...]:
        now = self._clock.now()
        kept = await self._database.rows("displays.renew", owner, now, now + lease)
        return tuple(sorted(SubmissionId(row["submission"]) for row in kept))

    async def save_state(self, submission: SubmissionId, owner: str, place: str) -> bool:
        return await self._database.row("displays.save_state", submission, owner, place) is not None

    async def finish(self, submission: SubmissionId, owner: str, place: str) -> bool:
        now = self._clock.now()
        row = await self._database.row("displays.finish", submission, owner, place, now)
        return row is not None

    async def release_all(self, owner: str) -> int:
        return len(await self._database.rows("displays.release_all", owner))

    async def find(self, submission: SubmissionId) -> Display | None:
        row = await self._database.row("displays.find", submission)
        return None if row is None else _display(row)

    async def save_conversation(self, person: PersonId, conversation: str) -> None:
        await self._database.rows("people.save_conversation", person, conversation)

    async def conversation(self, person: PersonId) -> str | None:
        row = await self._database.row("people.conversation", person)
        return None if row is None else row["conversation"]


def _display(row: Record) -> Display:
    """Convert a row of `displays` with its submission's person."""
    submission, person = SubmissionId(row["submission"]), PersonId(row["person"])
    return Display(submission, person, row["door"], row["place"], row["claims"])


class PostgresBoardThreads:
    """Threads by front end, guild, board and person; 0 stands for no person."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def find(self, key: ThreadKey) -> str | None:
        row = await self._database.row("board_threads.find", *_thread_values(key))
        return None if row is None else row["thread"]

    async def claim(
        self, key: ThreadKey, owner: str, lease: timedelta, lost: str | None = None
    ) -> int | None:
        now = self._clock.now()
        values = *_thread_values(key), owner, now, now + lease, lost
        row = await self._database.row("board_threads.claim", *values)
        return None if row is None else row["claims"]

    async def renew(self, key: ThreadKey, owner: str, lease: timedelta) -> bool:
        values = *_thread_values(key), owner, self._clock.now() + lease
        return await self._database.row("board_threads.renew", *values) is not None

    async def save(self, key: ThreadKey, owner: str, thread: str) -> bool:
        values = *_thread_values(key), owner, thread, self._clock.now()
        return await self._database.row("board_threads.save", *values) is not None

    async def release(self, key: ThreadKey, owner: str) -> bool:
        row = await self._database.row("board_threads.release", *_thread_values(key), owner)
        return row is not None

    async def use(self, key: ThreadKey) -> bool:
        values = *_thread_values(key), self._clock.now()
        return await self._database.row("board_threads.use", *values) is not None

    async def idle(self, door: str, guild: str) -> tuple[str, ...]:
        found = await self._database.rows("board_threads.idle", door, guild)
        return tuple(row["thread"] for row in found)


def _thread_values(key: ThreadKey) -> tuple[str, str, BoardId, int]:
    return key.door, key.guild, key.board, key.person or 0


class PostgresInteractions:
    """Commands, clicks and forms by id; each is held under a lease."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def claim(
        self, request: records.InteractionRequest, owner: str, lease: timedelta
    ) -> bool:
        now = self._clock.now()
        values = request.id, request.door, request.request, request.token, request.at
        row = await self._database.row("interactions.claim", *values, owner, now, now + lease)
        return row is not None

    async def claim_unfinished(
        self, door: str, owner: str, lease: timedelta, silent: timedelta
    ) -> tuple[records.OpenRequest, ...]:
        now = self._clock.now()
        since = now - records.TOKEN_TTL
        found = await self._database.rows(
            "interactions.claim_unfinished", door, owner, now - silent, now + lease, since
        )
        requests = [
            records.OpenRequest(
                row["id"], row["request"], row["token"], row["asked_at"], row["tries"]
            )
            for row in found
        ]
        return tuple(sorted(requests, key=lambda each: each.at))

    async def begin(self, interaction: str, owner: str, lease: timedelta) -> bool:
        return await self._changed("interactions.begin", interaction, owner, lease)

    async def renew(self, interaction: str, owner: str, lease: timedelta) -> bool:
        return await self._changed("interactions.renew", interaction, owner, lease)

    async def release(self, interaction: str, owner: str, pause: timedelta) -> bool:
        return await self._changed("interactions.release", interaction, owner, pause)

    async def save_request(self, interaction: str, owner: str, request: str) -> bool:
        row = await self._database.row("interactions.save_request", interaction, owner, request)
        return row is not None

    async def finish(
        self,
        interaction: str,
        owner: str,
        *,
        keep_token: bool = False,
        told: bool = False,
        untold: UntoldOutcome | None = None,
    ) -> bool:
        own = (None, None) if untold is None else (untold.addressee, storable(untold.said))
        values = interaction, owner, self._clock.now(), keep_token, told, *own
        return await self._database.row("interactions.finish", *values) is not None

    async def take_untold(self, addressee: str, interaction: str) -> str | None:
        since = self._clock.now() - records.REQUEST_TTL
        row = await self._database.row("interactions.take_untold", addressee, interaction, since)
        return None if row is None else row["said"]

    async def answer_of(self, interaction: str) -> KeptAnswer:
        since = self._clock.now() - records.TOKEN_TTL
        row = await self._database.row("interactions.answer_of", interaction, since)
        return KeptAnswer(*(row or ()))

    async def drop_token(self, interaction: str) -> bool:
        return await self._database.row("interactions.drop_token", interaction) is not None

    async def ask(self, question: records.Question) -> None:
        values = question.id, question.asked, question.action, storable(question.request)
        more = question.content, question.at, question.chosen
        await self._database.row("interactions.ask", *values, *more)

    async def question(self, interaction: str) -> records.Question | None:
        since = self._clock.now() - records.TOKEN_TTL
        row = await self._database.row("interactions.question", interaction, since)
        if row is None:
            return None
        return records.Question(
            row["id"],
            row["asked"],
            row["action"],
            row["request"],
            row["content"],
            row["asked_at"],
            tuple(row["chosen"]),
        )

    async def choose(self, interaction: str, offered: Sequence[str], chosen: Sequence[str]) -> None:
        await self._database.row("interactions.choose", interaction, offered, chosen)

    async def answer_question(self, interaction: str, by: str) -> bool:
        return await self._database.row("interactions.answer_question", interaction, by) is not None

    async def _changed(self, name: str, interaction: str, owner: str, after: timedelta) -> bool:
        now = self._clock.now()
        return await self._database.row(name, interaction, owner, now + after) is not None

    async def delete_finished(self) -> int:
        now = self._clock.now()
        found = await self._database.rows(
            "interactions.delete_finished", now - records.TOKEN_TTL, now - records.REQUEST_TTL
        )
        return len(found)
