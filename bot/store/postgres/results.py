"""Accepted evaluations and scores in Postgres."""

from collections.abc import Sequence

from bot.domain.ids import BoardId, JobId, PersonId, SubmissionId, TaskVersionId
from bot.domain.score import Score, ScoreValue
from bot.ports import Outcome, Refusal, StoredEvaluation
from bot.store.postgres.database import Database
from runners.contract.evaluation import Evaluation
from runners.contract.verdict import Verdict


class PostgresResults:
    """Evaluations as they were accepted, and what each is worth."""

    def __init__(self, database: Database) -> None:
        self._database = database

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

    async def outcomes(self, submissions: Sequence[SubmissionId]) -> tuple[Outcome, ...]:
        found = await self._database.rows("results.outcomes", submissions)
        return tuple(
            Outcome(
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
        found = await self._database.rows("results.scores", version, gpu)
        return tuple(
            Score(
                submission=SubmissionId(row["submission"]),
                person=PersonId(row["person"]),
                person_name=row["person_name"],
                board=BoardId(row["board"]),
                task_version=TaskVersionId(row["task_version"]),
                gpu=row["gpu"],
                value=ScoreValue(row["time_ns"], row["half_width_ns"]),
                submitted_at=row["submitted_at"],
            )
            for row in found
        )

    async def refusals(self, version: TaskVersionId, gpu: str) -> tuple[Refusal, ...]:
        found = await self._database.rows("results.refusals", version, gpu)
        return tuple(
            Refusal(
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
        )

    async def durations(self, version: TaskVersionId, gpu: str, limit: int) -> tuple[float, ...]:
        found = await self._database.rows("results.durations", version, gpu, limit)
        return tuple(row["wall_s"] for row in found)

    async def pool_durations(self, gpu: str, limit: int) -> tuple[float, ...]:
        found = await self._database.rows("results.pool_durations", gpu, limit)
        return tuple(row["wall_s"] for row in found)
