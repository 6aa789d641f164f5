"""Evaluations, scores and reference times in Postgres."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Generic, TypeVar

import asyncpg

from bot.domain.confirmation import with_former_runs
from bot.domain.ids import BoardId, JobId, PersonId, SubmissionId, TaskVersionId
from bot.domain.job import JobState
from bot.domain.records import FailedRun, JobResult, ScoreHistory, StoredEvaluation, StoredFile
from bot.domain.reference_times import FAILED, Reference, Untimed, failure, failure_subject
from bot.domain.scoring import Entrant, PairRatio, Score, ScoreValue, by_speed, pool_of
from bot.domain.submission import ExclusionKind, NewSubmission
from bot.ports import Clock
from bot.store.postgres.database import Database, query
from bot.store.postgres.queue import without_worker
from bot.store.postgres.submissions import source_bytes, source_hash
from runners.contract.evaluation import Evaluation
from runners.contract.files import EvaluationFile
from runners.contract.verdict import Verdict

MOST = 100_000
"""How many jobs are cached, a few hundred bytes each; the least recently used are dropped."""


Cached = TypeVar("Cached", bound=Score | FailedRun)
Read = Callable[[Sequence[JobId]], Awaitable[Mapping[JobId, Cached]]]
"""Reads the scores or failed runs of these jobs."""


class JobCache(Generic[Cached]):
    """A cache of scores or failed runs by job; in a transaction, it has `committed` before it.

    What a transaction reads does not get into `committed`, because it may be rolled back.
    """

    def __init__(self, read: "Read[Cached]", most: int = MOST) -> None:
        self._read, self._most = read, most
        self.committed: JobCache[Cached] | None = None
        self._known: dict[JobId, Cached] = {}

    async def of(self, wanted: Mapping[JobId, str]) -> dict[JobId, Cached]:
        """Return the data of jobs, given each person's current name; deleted jobs are left out."""
        known = self._known
        if self.committed is not None:
            before = self.committed._known  # noqa: SLF001 - of the same class
            known.update({job: before[job] for job in wanted if job in before and job not in known})
        unknown = [
            job
            for job, name in wanted.items()
            if (cached := known.get(job)) is None or cached.person_name != name
        ]
        if unknown:
            found = await self._read(unknown)
            for job in unknown:
                known.pop(job, None)
            if len(known) + len(found) > self._most:
                self._known = known = {job: known[job] for job in wanted if job in known}
            known.update(found)
        return {job: known[job] for job in wanted if job in known}


_LOWEST_HASH = -(2**31)
_HASHES = 2**32 - 1
"""The range in which Postgres' hashes are uniform: a part of it selects that share of the rows."""


class PostgresResults:
    """Evaluations as accepted, and their scores."""

    def __init__(self, database: Database, committed: "PostgresResults | None" = None) -> None:
        self._database = database
        self._scores: JobCache[Score] = JobCache(self._read_scores)
        self._refusals: JobCache[FailedRun] = JobCache(self._read_refusals)
        if committed is not None:
            self._scores.committed = committed._scores  # noqa: SLF001
            self._refusals.committed = committed._refusals  # noqa: SLF001

    async def evaluations(self, submission: SubmissionId) -> tuple[StoredEvaluation, ...]:
        found = await self._database.rows("results.evaluations", submission)
        return tuple(
            StoredEvaluation(
                job=JobId(row["job"]),
                gpu=row["gpu"],
                evaluation=Evaluation.model_validate_json(row["evaluation"]),
                at=row["at"],
            )
            for row in found
        )

    async def files(self, submission: SubmissionId) -> tuple[StoredFile, ...]:
        found = await self._database.rows("results.files", submission)
        return tuple(
            StoredFile(row["gpu"], EvaluationFile.of_zipped(row["name"], row["zipped"]))
            for row in found
        )

    async def outcomes(self, submissions: Sequence[SubmissionId]) -> tuple[JobResult, ...]:
        found = await self._database.rows("results.outcomes", submissions)
        return tuple(
            JobResult(
                submission=SubmissionId(row["submission"]),
                gpu=row["gpu"],
                verdict=Verdict(row["verdict"]),
                score=None if row["time_ns"] is None else _value(row),
                exclusion=None if row["exclusion"] is None else ExclusionKind(row["exclusion"]),
                noisy=row["noisy"],
            )
            for row in found
        )

    async def scores(self, version: TaskVersionId, gpu: str) -> tuple[Score, ...]:
        return tuple(map(_score, await self._database.rows("results.scores", version, gpu)))

    async def scores_of(
        self, person: PersonId, version: TaskVersionId, gpu: str
    ) -> tuple[Score, ...]:
        found = await self._database.rows("results.scores_of", person, version, gpu)
        met = await self._met(version, gpu) if found else {}
        return tuple(_with_met(_score(row), met) for row in found)

    async def _met(self, version: TaskVersionId, gpu: str) -> "_Met":
        """Return the rivals of each submission that was compared with any, oldest first."""
        met: _Met = {}
        for row in await self._database.rows("confirmations.with_ratio", version, gpu):
            pair = SubmissionId(row["rival"]), PairRatio(row["ratio"], row["half_width"])
            met.setdefault(SubmissionId(row["submission"]), []).append(pair)
        return met

    async def score_history(self, version: TaskVersionId, gpu: str, most: int) -> ScoreHistory:
        counted = await self._database.row("results.score_count", version, gpu)
        total = 0 if counted is None else int(counted["total"])
        # Given the number itself, Postgres can estimate how few rows match, and reads only those.
        upto = _LOWEST_HASH + int(min(1.0, most / max(total, 1)) * _HASHES)
        found = await self._database.rows("results.score_history", version, gpu, upto)
        met = await self._met(version, gpu) if found else {}
        return ScoreHistory(tuple(_with_met(_score(row), met) for row in found), total)

    async def fastest(self, leaderboards: Sequence[tuple[TaskVersionId, str]]) -> tuple[Score, ...]:
        versions, gpus = [each for each, _ in leaderboards], [gpu for _, gpu in leaderboards]
        return tuple(map(_score, await self._database.rows("results.fastest", versions, gpus)))

    async def entrants(self, version: TaskVersionId, gpu: str) -> tuple[Entrant, ...]:
        found = await self._database.rows("results.entrants", version, gpu)
        scores = await self._scores.of({row["best"]: row["person_name"] for row in found})
        met = await self._met(version, gpu) if found else {}
        entered = [
            Entrant(_with_met(_with_value(scores[row["best"]], row), met), row["attempts"])
            for row in found
            if row["best"] in scores
        ]
        return with_former_runs(sorted(entered, key=lambda each: by_speed(each.best)), met)

    async def revision(self, version: TaskVersionId, gpu: str) -> int:
        row = await self._database.row("results.revision", version, gpu)
        return 0 if row is None else int(row["moves"])

    async def refusals(self, version: TaskVersionId, gpu: str) -> tuple[FailedRun, ...]:
        found = await self._database.rows("results.refusals", version, gpu)
        refusals = await self._refusals.of({row["refused"]: row["person_name"] for row in found})
        return tuple(sorted(refusals.values(), key=lambda each: each.submission, reverse=True))

    async def durations(self, version: TaskVersionId, gpu: str, limit: int) -> tuple[float, ...]:
        found = await self._database.rows("results.durations", version, gpu, limit)
        return tuple(row["wall_s"] for row in found)

    async def gpu_durations(self, gpu: str, limit: int) -> tuple[float, ...]:
        found = await self._database.rows("results.gpu_durations", gpu, limit)
        return tuple(row["wall_s"] for row in found)

    async def _read_scores(self, jobs: Sequence[JobId]) -> dict[JobId, Score]:
        found = await self._database.rows("results.scores_by_job", jobs)
        return {JobId(row["job"]): _score(row) for row in found}

    async def _read_refusals(self, jobs: Sequence[JobId]) -> dict[JobId, FailedRun]:
        found = await self._database.rows("results.refusals_by_job", jobs)
        return {
            JobId(row["job"]): FailedRun(
                submission=SubmissionId(row["submission"]),
                person=PersonId(row["person"]),
                person_name=row["person_name"],
                gpu=row["gpu"],
                verdict=row["verdict"],
                stage=row["stage"],
                message=row["message"],
                submitted_at=row["submitted_at"],
                in_confirmation=row["in_confirmation"],
            )
            for row in found
        }


def _value(row: asyncpg.Record) -> ScoreValue:
    return ScoreValue(row["time_ns"], row["half_width_ns"], row["resolution_ns"], row["claimed_ns"])


def _score(row: asyncpg.Record) -> Score:
    ratio, half_width = row["reference_ratio"], row["reference_half_width"]
    return Score(
        submission=SubmissionId(row["submission"]),
        person=PersonId(row["person"]),
        person_name=row["person_name"],
        board=BoardId(row["board"]),
        task_version=TaskVersionId(row["task_version"]),
        gpu=row["gpu"],
        value=_value(row),
        submitted_at=row["submitted_at"],
        pool=pool_of(row["worker"], row["call"]),
        vs_reference=None if ratio is None else PairRatio(ratio, half_width),
    )


_Met = dict[SubmissionId, list[tuple[SubmissionId, PairRatio]]]


def _with_met(score: Score, met: _Met) -> Score:
    """Return the score with the rivals of its submission."""
    found = tuple(met.get(score.submission, ()))
    return score if score.met == found else replace(score, met=found)


def _with_value(score: Score, row: asyncpg.Record) -> Score:
    """Return the score with the value of the row."""
    value = _value(row)
    return score if score.value == value else replace(score, value=value)


class PostgresReferences:
    """Rows by task version and GPU type."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def usual(
        self, version: TaskVersionId, measured_ns: Sequence[float]
    ) -> tuple[float, ...]:
        row = await self._database.row("references.usual", version, list(measured_ns))
        return () if row is None else tuple(row["times_ns"])

    async def untimed(self) -> tuple[Untimed, ...]:
        found = await self._database.rows("references.untimed")
        return tuple(
            Untimed(BoardId(row["board"]), TaskVersionId(row["task_version"]), row["gpu"])
            for row in found
        )

    async def order(self, submission: NewSubmission) -> bool:
        (gpu,) = submission.gpus
        async with self._database.connection() as connection:
            try:
                async with connection.transaction():  # a savepoint for its failures
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

    async def mark_untimeable(self, version: TaskVersionId, gpu: str) -> bool:
        return await self._database.row("references.mark_untimeable", version, gpu) is not None

    async def delete_given_up(self, age: timedelta) -> int:
        before = self._clock.now() - age
        return len(await self._database.rows("references.delete_given_up", before))

    async def of(self, version: TaskVersionId, gpu: str) -> Reference | None:
        row = await self._database.row("references.of", version, gpu)
        return None if row is None else _reference(row)

    async def record_failures(self) -> tuple[tuple[str, str], ...]:
        recorded: list[tuple[str, str]] = []
        async with self._database.transaction() as connection:
            for row in await connection.fetch(query("references.lock_unrecorded")):
                if reason := _failure(row):
                    subject = failure_subject(row["name"], row["number"], row["gpu"])
                    audit = None, FAILED, subject, reason, self._clock.now(), None
                    await connection.execute(query("audit.record"), *audit)
                    await connection.execute(
                        query("references.mark_recorded"), row["task_version"], row["gpu"]
                    )
                    recorded.append((subject, reason))
        return tuple(recorded)


def _reference(row: asyncpg.Record) -> Reference:
    submission = None if row["submission"] is None else SubmissionId(row["submission"])
    if row["time_ns"] is None:
        return Reference(submission, failure="" if row["state"] is None else _failure(row))
    return Reference(submission, _value(row), row["machine"], row["at"])


def _failure(row: asyncpg.Record) -> str:
    return failure(
        JobState(row["state"]), without_worker(row["error"]), row["verdict"], row["message"]
    )
