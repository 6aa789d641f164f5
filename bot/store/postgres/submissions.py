"""Submissions, their sources, and requests of the evaluation server in Postgres."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from asyncpg import Record

from bot.domain.board import SourceVisibility
from bot.domain.errors import StoreError
from bot.domain.ids import BoardId, PersonId, SubmissionId, TaskVersionId
from bot.domain.job import JobState, submission_state
from bot.domain.records import RequestCount, RequestRun
from bot.domain.submission import KEY_TTL, IdempotencyKey, NewSubmission, Submission, key_reused
from bot.ports import Clock
from bot.store.postgres.admin import admit
from bot.store.postgres.boards import OF_SUBMISSIONS
from bot.store.postgres.database import Connection, Database, query, storable
from runners.contract.evaluation import ProfileOptions
from runners.contract.task import Mode, TaskDefinition
from runners.contract.verdict import Stage, Verdict


def source_bytes(source: str) -> bytes:
    """Return the text as bytes; lone surrogates survive, so that the source is stored unchanged."""
    return source.encode("utf-8", "surrogatepass")


def source_text(data: bytes) -> str:
    """Return the text of bytes made by `source_bytes`."""
    return data.decode("utf-8", "surrogatepass")


def source_hash(source: str) -> str:
    """Return the SHA-256 of the text's bytes, in hex."""
    return hashlib.sha256(source_bytes(source)).hexdigest()


class PostgresSubmissions:
    """Submissions by id; equal sources are stored once, by hash."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def add(self, submission: NewSubmission) -> Submission:
        async with self._database.transaction() as connection:
            return await self.add_within(connection, submission)

    async def add_within(self, connection: Connection, submission: NewSubmission) -> Submission:
        """Store it in this transaction."""
        now, key = self._clock.now(), submission.idempotency_key
        if key is not None:
            await connection.execute(query("moderation.lock_person"), submission.person)
            values = submission.person, key.key, now - KEY_TTL
            first = await connection.fetchrow(query("submissions.first"), *values)
            if first is not None:
                return _first(first, key)
        if not submission.judged_again:
            await admit(connection, submission, now)
        row = await connection.fetchrow(query("submissions.add"), *_values(submission, now))
        if row is None:
            raise StoreError("the submission could not be stored")
        if key is not None:
            stored = submission.person, key.key, key.digest, row["id"], now
            await connection.execute(query("submissions.store_key"), *stored)
        return _submission(row)

    async def first(self, person: PersonId, key: IdempotencyKey) -> Submission | None:
        since = self._clock.now() - KEY_TTL
        row = await self._database.row("submissions.first", person, key.key, since)
        return None if row is None else _first(row, key)

    async def delete_expired_keys(self) -> int:
        until = self._clock.now() - KEY_TTL
        return len(await self._database.rows("submissions.delete_expired_keys", until))

    async def get(self, submission: SubmissionId) -> Submission | None:
        row = await self._database.row("submissions.get", submission)
        return None if row is None else _submission(row)

    async def several(self, submissions: Sequence[SubmissionId]) -> tuple[Submission, ...]:
        found = await self._database.rows("submissions.several", list(submissions))
        return tuple(_submission(row) for row in found)

    async def newest(self, limit: int) -> tuple[Submission, ...]:
        found = await self._database.rows("submissions.newest", limit)
        return tuple(_submission(row) for row in found)

    async def to(self, board: BoardId) -> tuple[Submission, ...]:
        found = await self._database.rows("submissions.to", board)
        return tuple(_submission(row) for row in found)

    async def source(self, submission: SubmissionId) -> str:
        row = await self._database.row("submissions.source", submission)
        if row is None:
            raise StoreError(f"there is no submission with id {submission}")
        return source_text(row["text"])

    async def write_note(self, submission: SubmissionId, note: str) -> None:
        await self._database.rows("submissions.write_note", submission, storable(note))

    async def history(
        self,
        person: PersonId,
        board: BoardId | None = None,
        before: SubmissionId | None = None,
        limit: int = 50,
    ) -> tuple[Submission, ...]:
        found = await self._database.rows("submissions.history", person, board, before, limit)
        return tuple(_submission(row) for row in found)


def _first(row: "Record", key: IdempotencyKey) -> Submission:
    """Return the key's earlier submission; UserError when its digest differs."""
    if row["digest"] != key.digest:
        raise key_reused(key.key)
    return _submission(row)


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
        new.limit_s,
        new.cards,
        None if new.consent is None else new.consent.value,
    )


def _submission(row: Record) -> Submission:
    """Convert a row of `submissions` with the states of its jobs."""
    return Submission(
        id=SubmissionId(row["id"]),
        person=PersonId(row["person"]),
        board=BoardId(row["board"]),
        task_version=TaskVersionId(row["task_version"]),
        file_name=row["file_name"],
        source_hash=row["source"],
        mode=Mode(row["mode"]),
        gpus=tuple(row["gpus"]),
        state=submission_state(tuple(JobState(state) for state in row["states"])),
        created_at=row["created_at"],
        profile=_profile(row["profile"]),
        warning=row["warning"],
        consent=SourceVisibility(row["consent"]),
        note=row["note"],
    )


def _profile(text: str | None) -> ProfileOptions | None:
    return None if text is None else ProfileOptions.model_validate_json(text)


_DELETED_AT_ONCE = 500


class PostgresRequests:
    """The submissions to the system's board, with their versions.

    Adding or deleting one locks the board: a version is never deleted while a submission to it is
    being added.
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

    async def delete_ended(
        self, board: BoardId, age: timedelta, person: PersonId | None = None
    ) -> int:
        deleted = 0
        while True:
            count = await self._delete_some(board, age, person)
            deleted += count
            if count < _DELETED_AT_ONCE:
                return deleted

    async def _delete_some(self, board: BoardId, age: timedelta, person: PersonId | None) -> int:
        before = self._clock.now() - age
        async with self._database.transaction() as connection:
            await connection.fetchrow(query("boards.lock"), board)
            found = await connection.fetch(
                query("requests.lock_ended"), board, before, person, _DELETED_AT_ONCE
            )
            ids = [row["id"] for row in found]
            for name in OF_SUBMISSIONS:
                await connection.execute(query(name), ids)
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
