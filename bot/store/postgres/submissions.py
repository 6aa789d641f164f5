"""Submissions and their sources in Postgres."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from bot.domain.errors import StoreError
from bot.domain.ids import BoardId, PersonId, SubmissionId
from bot.domain.once import KEPT, Once, reused
from bot.domain.submission import NewSubmission, Submission
from bot.ports import Clock
from bot.store.postgres import rows
from bot.store.postgres.database import Database
from bot.store.postgres.moderation import admit
from bot.store.queries import query
from bot.store.sources import source_bytes, source_hash, source_text
from bot.store.text import storable

if TYPE_CHECKING:
    from asyncpg import Record

    from bot.store.postgres.database import Connection


class PostgresSubmissions:
    """Submissions by id; a source is kept once per hash."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def add(self, submission: NewSubmission) -> Submission:
        async with self._database.transaction() as connection:
            return await self.add_within(connection, submission)

    async def add_within(self, connection: "Connection", submission: NewSubmission) -> Submission:
        """Store it as a part of this transaction."""
        now, once = self._clock.now(), submission.once
        if once is not None:
            await connection.execute(query("moderation.take_turn"), submission.person)
            key = submission.person, once.key, now - KEPT
            first = await connection.fetchrow(query("submissions.first"), *key)
            if first is not None:
                return _first(first, once)
        if not submission.judged_again:
            await admit(connection, submission, now)
        row = await connection.fetchrow(query("submissions.add"), *_values(submission, now))
        if row is None:
            raise StoreError("the submission could not be stored")
        if once is not None:
            kept = submission.person, once.key, once.digest, row["id"], now
            await connection.execute(query("submissions.keep_key"), *kept)
        return rows.submission(row)

    async def first(self, person: PersonId, once: Once) -> Submission | None:
        since = self._clock.now() - KEPT
        row = await self._database.row("submissions.first", person, once.key, since)
        return None if row is None else _first(row, once)

    async def forget_keys(self) -> int:
        until = self._clock.now() - KEPT
        return len(await self._database.rows("submissions.forget_keys", until))

    async def get(self, submission: SubmissionId) -> Submission | None:
        row = await self._database.row("submissions.get", submission)
        return None if row is None else rows.submission(row)

    async def several(self, submissions: Sequence[SubmissionId]) -> tuple[Submission, ...]:
        found = await self._database.rows("submissions.several", list(submissions))
        return tuple(rows.submission(row) for row in found)

    async def to(self, board: BoardId) -> tuple[Submission, ...]:
        found = await self._database.rows("submissions.to", board)
        return tuple(rows.submission(row) for row in found)

    async def source(self, submission: SubmissionId) -> str:
        row = await self._database.row("submissions.source", submission)
        if row is None:
            raise StoreError(f"there is no submission with id {submission}")
        return source_text(row["text"])

    async def history(
        self,
        person: PersonId,
        board: BoardId | None = None,
        before: SubmissionId | None = None,
        limit: int = 50,
    ) -> tuple[Submission, ...]:
        found = await self._database.rows("submissions.history", person, board, before, limit)
        return tuple(rows.submission(row) for row in found)


def _first(row: "Record", once: Once) -> Submission:
    """What the key stands for already; UserError when another submission came with it."""
    if row["digest"] != once.digest:
        raise reused(once.key)
    return rows.submission(row)


def _values(new: NewSubmission, now: datetime) -> tuple[object, ...]:
    return (
        new.person,
        new.board,
        new.task_version,
        new.file_name,
        source_hash(new.source),
        source_bytes(new.source),
        new.mode.value,
        new.gpus,
        new.priority,
        new.max_attempts,
        now,
        None if new.display is None else new.display.door,
        None if new.display is None else new.display.place,
        new.judged_again,
        None if new.profile is None else new.profile.model_dump_json(exclude_none=True),
        storable(new.warning),
    )
