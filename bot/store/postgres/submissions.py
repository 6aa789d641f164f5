"""Submissions and their sources in Postgres."""

from datetime import datetime

from bot.domain.errors import StoreError
from bot.domain.ids import BoardId, PersonId, SubmissionId
from bot.domain.submission import NewSubmission, Submission
from bot.ports import Clock
from bot.store.postgres import rows
from bot.store.postgres.database import Database
from bot.store.postgres.moderation import admit
from bot.store.queries import query
from bot.store.sources import source_bytes, source_hash, source_text


class PostgresSubmissions:
    """Submissions by id; a source is kept once per hash."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def add(self, submission: NewSubmission) -> Submission:
        now = self._clock.now()
        async with self._database.transaction() as connection:
            if not submission.judged_again:
                await admit(connection, submission, now)
            row = await connection.fetchrow(query("submissions.add"), *_values(submission, now))
        if row is None:
            raise StoreError("the submission could not be stored")
        return rows.submission(row)

    async def get(self, submission: SubmissionId) -> Submission | None:
        row = await self._database.row("submissions.get", submission)
        return None if row is None else rows.submission(row)

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
    )
