"""Publications, and the runs of their checks, in Postgres."""

from datetime import datetime, timedelta

import asyncpg

from bot.domain.costs import limit_and_cards
from bot.domain.errors import StoreError
from bot.domain.ids import CheckRunId, JobId, PersonId, PublicationId
from bot.domain.job import CHECK_ATTEMPTS, CHECK_PRIORITY, JobState, QueuedRun
from bot.domain.publication import PER_PERSON, NewPublication, Publication, PublicationSummary
from bot.ports import Clock
from bot.store.postgres.database import Database
from runners.contract.evaluation import Evaluation, EvaluationRequest, Progress
from runners.contract.verdict import Verdict


class PostgresPublications:
    """Publications by number; each is held under a lease."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def add(self, publication: NewPublication) -> PublicationId:
        row = await self._database.row(
            "releases.add",
            publication.door,
            publication.person,
            publication.zip,
            publication.wish,
            publication.place,
        )
        if row is None:
            raise StoreError("the publication could not be stored")
        return PublicationId(row["id"])

    async def claim(
        self, door: str, owner: str, lease: timedelta, limit: int = 1
    ) -> tuple[Publication, ...]:
        now = self._clock.now()
        found = await self._database.rows(
            "releases.claim", door, owner, now, now + lease, limit, PER_PERSON
        )
        return tuple(sorted(map(_publication, found), key=lambda one: one.id))

    async def renew(self, owner: str, lease: timedelta) -> tuple[PublicationId, ...]:
        now = self._clock.now()
        kept = await self._database.rows("releases.renew", owner, now, now + lease)
        return tuple(sorted(PublicationId(row["id"]) for row in kept))

    async def save_state(
        self,
        publication: PublicationId,
        owner: str,
        *,
        state: str | None = None,
        place: str | None = None,
    ) -> bool:
        row = await self._database.row("releases.save_state", publication, owner, state, place)
        return row is not None

    async def cancel(
        self, person: PersonId, why: str, publication: PublicationId | None = None
    ) -> tuple[PublicationId, ...]:
        rows = await self._database.rows("releases.cancel", person, publication, why)
        return tuple(sorted(PublicationId(row["id"]) for row in rows))

    async def cancellation(self, publication: PublicationId) -> str | None:
        row = await self._database.row("releases.cancellation", publication)
        return None if row is None else row["cancelled"]

    async def finish(self, publication: PublicationId, owner: str) -> bool:
        return await self._database.row("releases.finish", publication, owner) is not None

    async def end(self, publication: PublicationId, owner: str, *, keep_zip: bool = False) -> bool:
        now = self._clock.now()
        return (
            await self._database.row("releases.end", publication, owner, now, keep_zip) is not None
        )

    async def repeat(
        self, door: str, publication: PublicationId, request: str
    ) -> PublicationId | None:
        row = await self._database.row("releases.repeat", publication, door, request)
        return None if row is None else PublicationId(row["id"])

    async def kept_zip(self, door: str, publication: PublicationId) -> bytes | None:
        row = await self._database.row("releases.kept_zip", publication, door)
        return None if row is None else bytes(row["zip"])

    async def summary(
        self, door: str | None, publication: PublicationId
    ) -> PublicationSummary | None:
        row = await self._database.row("releases.summary", publication, door)
        return None if row is None else _summary(row)

    async def summaries_of(self, door: str, person: PersonId) -> tuple[PublicationSummary, ...]:
        return tuple(
            map(_summary, await self._database.rows("releases.summaries_of", person, door))
        )

    async def delete_ended(self, ended_before: datetime) -> int:
        return len(await self._database.rows("releases.delete_ended", ended_before))

    async def release_all(self, owner: str) -> int:
        return len(await self._database.rows("releases.release_all", owner))


def _publication(row: asyncpg.Record) -> Publication:
    return Publication(
        id=PublicationId(row["id"]),
        person=PersonId(row["person"]),
        zip=bytes(row["zip"]),
        wish=row["wish"],
        place=row["place"],
        tries=row["tries"],
        state=row["state"],
    )


def _summary(row: asyncpg.Record) -> PublicationSummary:
    return PublicationSummary(
        id=PublicationId(row["id"]),
        person=PersonId(row["person"]),
        wish=row["wish"],
        state=row["state"],
        tries=row["tries"],
        ended_at=row["ended_at"],
        has_zip=row["has_zip"],
    )


class PostgresCheckRuns:
    """Runs by the number of their job."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def store_task(self, publication: PublicationId, digest: str, definition: str) -> None:
        await self._database.rows("check_runs.store_task", publication, digest, definition)

    async def add(
        self, publication: PublicationId, key: str, request: EvaluationRequest, digest: str
    ) -> JobId | None:
        values = (
            publication,
            key,
            request.model_dump_json(exclude={"task"}),
            request.gpu,
            request.mode.value,
            CHECK_PRIORITY,
            CHECK_ATTEMPTS,
            self._clock.now(),
            digest,
            *limit_and_cards(request.task, request.mode, request.gpu),
        )
        added = await self._database.row("check_runs.add", *values)
        # One that was added with this key in the meantime is visible only to the next statement.
        row = added or await self._database.row("check_runs.add", *values)
        return None if row is None else JobId(row["job"])

    async def get(self, job: JobId) -> QueuedRun | None:
        row = await self._database.row("check_runs.get", job)
        return None if row is None else _check_run(row)

    async def request(self, run: CheckRunId) -> EvaluationRequest | None:
        row = await self._database.row("check_runs.request", run)
        if row is None:
            return None
        whole = f'{{"task":{row["definition"]},{row["request"][1:]}'
        return EvaluationRequest.model_validate_json(whole)

    async def save_progress(self, job: JobId, fence: int, progress: Progress) -> bool:
        text = progress.model_dump_json()
        return await self._database.row("check_runs.save_progress", job, fence, text) is not None

    async def accept(self, job: JobId, fence: int, evaluation: Evaluation) -> bool:
        text = evaluation.model_dump_json(exclude={"files"})
        used = evaluation.gpu_s, evaluation.verdict is Verdict.TASK_ERROR
        values = job, fence, text, self._clock.now(), *used
        return await self._database.row("check_runs.accept", *values) is not None


def _check_run(row: asyncpg.Record) -> QueuedRun:
    progress, evaluation = row["progress"], row["evaluation"]
    return QueuedRun(
        job=JobId(row["job"]),
        gpu=row["gpu"],
        state=JobState(row["state"]),
        error=row["error"],
        progress=progress and Progress.model_validate_json(progress),
        evaluation=evaluation and Evaluation.model_validate_json(evaluation),
        waits=row["waits"],
    )
