"""Requests of the evaluation server in Postgres."""

import json
from dataclasses import replace
from datetime import timedelta

from asyncpg import Record

from bot.domain.errors import StoreError
from bot.domain.ids import BoardId, PersonId, SubmissionId, TaskVersionId
from bot.domain.job import JobState
from bot.domain.records import RequestCount, RequestRun
from bot.domain.submission import NewSubmission, Submission
from bot.ports import Clock
from bot.store.postgres.boards import OF_SUBMISSIONS
from bot.store.postgres.database import Database
from bot.store.postgres.submissions import PostgresSubmissions
from bot.store.queries import query
from runners.contract.task import TaskDefinition
from runners.contract.verdict import Stage, Verdict

_FORGOTTEN_AT_ONCE = 500


class PostgresRequests:
    """The submissions to the house's board, with their versions.

    Whoever adds one or forgets some locks the board: a version is never on its way out while a
    submission to it is on its way in.
    """

    def __init__(self, database: Database, clock: Clock, submissions: PostgresSubmissions) -> None:
        self._database = database
        self._clock = clock
        self._submissions = submissions

    async def add(self, submission: NewSubmission, task: TaskDefinition, digest: str) -> Submission:
        board, now = submission.board, self._clock.now()
        async with self._database.transaction() as connection:
            await connection.fetchrow(query("boards.lock"), board)
            definition = task.model_dump_json()
            await connection.execute(query("boards.add_version"), board, digest, definition, now)
            version = await connection.fetchrow(query("boards.version_of_digest"), board, digest)
            if version is None:
                raise StoreError(f"the task version {digest} could not be stored")
            judged_by = replace(submission, task_version=TaskVersionId(version["id"]))
            return await self._submissions.add_within(connection, judged_by)

    async def tallies(self, board: BoardId) -> dict[JobState, RequestCount]:
        found = await self._database.rows("requests.tallies", board, self._clock.now())
        return {
            JobState(row["state"]): RequestCount(row["requests"], row["age_s"]) for row in found
        }

    async def newest(self, board: BoardId, limit: int) -> tuple[RequestRun, ...]:
        return tuple(map(_run, await self._database.rows("requests.newest", board, limit)))

    async def overdue(self, board: BoardId, age: timedelta) -> tuple[SubmissionId, ...]:
        before = self._clock.now() - age
        found = await self._database.rows("requests.overdue", board, before)
        return tuple(SubmissionId(row["id"]) for row in found)

    async def forget(self, board: BoardId, age: timedelta, person: PersonId | None = None) -> int:
        forgotten = 0
        while True:
            count = await self._forget_some(board, age, person)
            forgotten += count
            if count < _FORGOTTEN_AT_ONCE:
                return forgotten

    async def _forget_some(self, board: BoardId, age: timedelta, person: PersonId | None) -> int:
        before = self._clock.now() - age
        async with self._database.transaction() as connection:
            await connection.fetchrow(query("boards.lock"), board)
            found = await connection.fetch(
                query("requests.doomed"), board, before, person, _FORGOTTEN_AT_ONCE
            )
            doomed = [row["id"] for row in found]
            for name in OF_SUBMISSIONS:
                await connection.execute(query(name), doomed)
            await connection.execute(
                query("requests.drop_sources"), [row["source"] for row in found]
            )
            await connection.execute(query("requests.drop_versions"), board)
        return len(found)


def _run(row: Record) -> RequestRun:
    return RequestRun(
        gpu=row["gpu"],
        state=JobState(row["state"]),
        created_at=row["created_at"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        verdict=None if row["verdict"] is None else Verdict(row["verdict"]),
        stage=None if row["stage"] is None else Stage(row["stage"]),
        used_s=row["used_s"] or 0.0,
        durations_s=json.loads(row["durations_s"] or "{}"),
    )
