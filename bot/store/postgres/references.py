"""The times of references in Postgres."""

from datetime import timedelta

import asyncpg

from bot.domain.ids import BoardId, SubmissionId, TaskVersionId
from bot.domain.job import JobState
from bot.domain.reference_times import FAILED, Reference, Untimed, failure, failure_subject
from bot.domain.score import ScoreValue
from bot.domain.submission import NewSubmission
from bot.ports import Clock
from bot.store.postgres.database import Database
from bot.store.queries import query
from bot.store.sources import source_bytes, source_hash
from bot.store.text import without_worker


class PostgresReferences:
    """Rows by task version and GPU type."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def lacking(self) -> tuple[Untimed, ...]:
        found = await self._database.rows("references.lacking")
        return tuple(
            Untimed(BoardId(row["board"]), TaskVersionId(row["task_version"]), row["gpu"])
            for row in found
        )

    async def order(self, submission: NewSubmission) -> bool:
        (gpu,) = submission.gpus
        async with self._database.connection() as connection:
            try:
                async with connection.transaction():  # its failure fails no transaction around it
                    added = await connection.fetchval(
                        query("references.order"),
                        submission.person,
                        submission.task_version,
                        gpu,
                        submission.file_name,
                        source_hash(submission.source),
                        source_bytes(submission.source),
                        submission.mode.value,
                        submission.priority,
                        submission.max_attempts,
                        self._clock.now(),
                    )
            except asyncpg.UniqueViolationError:
                return False
        return added is not None

    async def go_without(self, version: TaskVersionId, gpu: str) -> bool:
        return await self._database.row("references.go_without", version, gpu) is not None

    async def forget_given_up(self, age: timedelta) -> int:
        before = self._clock.now() - age
        return len(await self._database.rows("references.forget_given_up", before))

    async def of(self, version: TaskVersionId, gpu: str) -> Reference | None:
        row = await self._database.row("references.of", version, gpu)
        return None if row is None else _reference(row)

    async def note_failures(self) -> tuple[tuple[str, str], ...]:
        noted: list[tuple[str, str]] = []
        async with self._database.transaction() as connection:
            for row in await connection.fetch(query("references.lock_unnoted")):
                if reason := _failure(row):
                    subject = failure_subject(row["name"], row["number"], row["gpu"])
                    audit = None, FAILED, subject, reason, self._clock.now()
                    await connection.execute(query("audit.record"), *audit)
                    await connection.execute(
                        query("references.note"), row["task_version"], row["gpu"]
                    )
                    noted.append((subject, reason))
        return tuple(noted)


def _reference(row: asyncpg.Record) -> Reference:
    submission = None if row["submission"] is None else SubmissionId(row["submission"])
    if row["time_ns"] is None:
        return Reference(submission, failure="" if row["state"] is None else _failure(row))
    value = ScoreValue(row["time_ns"], row["half_width_ns"])
    return Reference(submission, value, row["machine"], row["at"])


def _failure(row: asyncpg.Record) -> str:
    return failure(
        JobState(row["state"]), without_worker(row["error"]), row["verdict"], row["message"]
    )
