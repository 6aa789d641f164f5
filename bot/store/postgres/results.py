"""Accepted evaluations and scores in Postgres."""

from collections.abc import Sequence

from asyncpg import Record

from bot.domain.ids import BoardId, JobId, PersonId, SubmissionId, TaskVersionId
from bot.domain.ranking import Entrant, in_order
from bot.domain.records import FailedRun, JobResult, ScoreHistory, StoredEvaluation, StoredFile
from bot.domain.score import Score, ScoreValue, pool_of
from bot.store.postgres.database import Database
from bot.store.postgres.remembered import Remembered
from runners.contract.evaluation import Evaluation
from runners.contract.files import EvaluationFile
from runners.contract.verdict import Verdict

_LOWEST_HASH = -(2**31)
_HASHES = 2**32 - 1
"""A hash of Postgres lies anywhere among so many: a part of them is as much of what is hashed."""


class PostgresResults:
    """Evaluations as they were accepted, and what each is worth."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._scores = Remembered(self._read_scores)
        self._refusals = Remembered(self._read_refusals)

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
                score=None
                if row["time_ns"] is None
                else ScoreValue(row["time_ns"], row["half_width_ns"]),
            )
            for row in found
        )

    async def scores(self, version: TaskVersionId, gpu: str) -> tuple[Score, ...]:
        return tuple(map(_score, await self._database.rows("results.scores", version, gpu)))

    async def scores_of(
        self, person: PersonId, version: TaskVersionId, gpu: str
    ) -> tuple[Score, ...]:
        found = await self._database.rows("results.scores_of", person, version, gpu)
        return tuple(map(_score, found))

    async def course(self, version: TaskVersionId, gpu: str, most: int) -> ScoreHistory:
        counted = await self._database.row("results.counted", version, gpu)
        total = 0 if counted is None else int(counted["total"])
        # Given the number itself, Postgres knows how few they are, and reads no more than those.
        upto = _LOWEST_HASH + int(min(1.0, most / max(total, 1)) * _HASHES)
        found = await self._database.rows("results.course", version, gpu, upto)
        return ScoreHistory(tuple(map(_score, found)), total)

    async def fastest(self, leaderboards: Sequence[tuple[TaskVersionId, str]]) -> tuple[Score, ...]:
        versions, gpus = [each for each, _ in leaderboards], [gpu for _, gpu in leaderboards]
        return tuple(map(_score, await self._database.rows("results.fastest", versions, gpus)))

    async def entrants(self, version: TaskVersionId, gpu: str) -> tuple[Entrant, ...]:
        found = await self._database.rows("results.entrants", version, gpu)
        scores = await self._scores.of({row["best"]: row["person_name"] for row in found})
        entered = [
            Entrant(scores[row["best"]], row["attempts"]) for row in found if row["best"] in scores
        ]
        return tuple(sorted(entered, key=lambda each: in_order(each.best)))

    async def moves(self, version: TaskVersionId, gpu: str) -> int:
        row = await self._database.row("results.moves", version, gpu)
        return 0 if row is None else int(row["moves"])

    async def refusals(self, version: TaskVersionId, gpu: str) -> tuple[FailedRun, ...]:
        found = await self._database.rows("results.refusals", version, gpu)
        refusals = await self._refusals.of({row["refused"]: row["person_name"] for row in found})
        return tuple(sorted(refusals.values(), key=lambda each: each.submission, reverse=True))

    async def durations(self, version: TaskVersionId, gpu: str, limit: int) -> tuple[float, ...]:
        found = await self._database.rows("results.durations", version, gpu, limit)
        return tuple(row["wall_s"] for row in found)

    async def pool_durations(self, gpu: str, limit: int) -> tuple[float, ...]:
        found = await self._database.rows("results.pool_durations", gpu, limit)
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
            )
            for row in found
        }


def _score(row: Record) -> Score:
    return Score(
        submission=SubmissionId(row["submission"]),
        person=PersonId(row["person"]),
        person_name=row["person_name"],
        board=BoardId(row["board"]),
        task_version=TaskVersionId(row["task_version"]),
        gpu=row["gpu"],
        value=ScoreValue(row["time_ns"], row["half_width_ns"]),
        submitted_at=row["submitted_at"],
        pool=pool_of(row["worker"], row["call"]),
    )
