"""A board whose ranked runs are confirmed, with a worker that answers what a test says."""

from dataclasses import dataclass, field

from bot.domain.accounts import Person
from bot.domain.confirmation import Confirmation
from bot.domain.ids import SubmissionId
from bot.domain.job import GiveUpReason, LeasedJob
from bot.domain.scoring import Standing, rank_entrants
from bot.services.confirmations import advance
from bot.services.dispatch.config import DispatchConfig
from bot.services.dispatch.worker_queue import StoreQueue
from runners.contract.comparison import Comparison, Ratio
from runners.contract.evaluation import Evaluation, EvaluationRequest
from runners.contract.verdict import Stage, Verdict
from tests.doubles.clock import ManualClock
from tests.doubles.stored import Scene, make_benchmark, make_evaluation

ROUNDS = 5


@dataclass
class Arena:
    """People who submit to one board, and its only worker."""

    scene: Scene
    clock: ManualClock
    seen: list[EvaluationRequest] = field(default_factory=list)
    """What the worker was asked to compare."""
    gpu: str = "CPU"

    @property
    def queue(self) -> StoreQueue:
        """The worker's way to the queue."""
        return StoreQueue(self.scene.store, DispatchConfig(worker="w1"))

    async def person(self, name: str) -> Person:
        """Somebody with this name."""
        return await self.scene.store.people.ensure(f"local:{name}", name)

    async def ran(self, name: str, time_ns: float, half_width_ns: float = 0.0) -> SubmissionId:
        """A ranked run of this time, judged once; comparisons that wait in the queue stay there."""
        return await self._judged(name, time_ns, half_width_ns, Verdict.PASSED)

    async def crashed(self, name: str) -> SubmissionId:
        """A ranked run that crashed."""
        return await self._judged(name, 0.0, 0.0, Verdict.CRASHED)

    async def _judged(
        self, name: str, time_ns: float, half_width_ns: float, verdict: Verdict
    ) -> SubmissionId:
        source = f"# {name} {time_ns}\n"
        submission = await self.scene.submit(await self.person(name), source=source)
        jobs = await self.queue.claim({self.gpu: 5})
        (job,) = (each for each in jobs if each.submission == submission.id)
        for other in jobs:
            if other.id != job.id:
                await self.queue.give_up(other, GiveUpReason.UNTOUCHED)
        request = await self.queue.request(job)
        assert request is not None
        made = make_evaluation(verdict).model_copy(update={"request_id": request.request_id})
        if verdict is Verdict.PASSED:
            made = _of_time(made, time_ns, half_width_ns)
        assert await self.queue.accept(job, request, made)
        await self.step()
        return submission.id

    async def step(self) -> None:
        """Advance the clock by a second and do what is due, as the loop of every process does."""
        self.clock.advance(1)
        await advance(self.scene.store, self.clock)

    async def _claim(self) -> tuple[LeasedJob, EvaluationRequest]:
        (job,) = await self.queue.claim({self.gpu: 1})
        request = await self.queue.request(job)
        assert request is not None
        return job, request

    async def compared(self, ratio: float = 1.0, half_width: float = 0.001) -> EvaluationRequest:
        """Answer the comparison that waits with this ratio."""
        found = Ratio(ratio=ratio, half_width=half_width, rounds=ROUNDS)
        met = Comparison(benchmarks=(found,), rival_verdict=Verdict.PASSED)
        return await self.answered(comparison=met)

    async def rival_failed(self) -> EvaluationRequest:
        """Answer that only the rival failed."""
        met = Comparison(rival_verdict=Verdict.CRASHED, rival_detail="it crashed")
        return await self.answered(comparison=met)

    async def answered(
        self, verdict: Verdict = Verdict.PASSED, **changes: object
    ) -> EvaluationRequest:
        """Answer the system's next job with such an evaluation."""
        job, request = await self._claim()
        assert job.is_system_job
        self.seen.append(request)
        stage = None if verdict is Verdict.PASSED else Stage.TIMING
        evaluation = make_evaluation(verdict).model_copy(
            update={"request_id": request.request_id, "stage": stage} | changes
        )
        assert await self.queue.accept(job, request, evaluation)
        await self.step()
        return request

    async def lost(self) -> None:
        """Give up the system's next job for good."""
        job, _ = await self._claim()
        assert job.is_system_job
        assert await self.queue.give_up(job, GiveUpReason.HOPELESS, "no card")
        await self.step()

    async def ranks(self) -> list[tuple[int, str, float]]:
        """Rank, name and time of everybody."""
        return [
            (each.rank, each.score.person_name, round(each.score.value.time_ns, 3))
            for each in await self.standings()
        ]

    async def standings(self) -> tuple[Standing, ...]:
        """The leaderboard."""
        version, results = self.scene.board.task_version, self.scene.store.results
        return rank_entrants(await results.entrants(version, self.gpu))

    async def confirmation(self, submission: SubmissionId) -> Confirmation:
        """The last comparison of a submission."""
        return (await self.scene.store.confirmations.of(submission))[-1]

    async def pending(self) -> tuple[Confirmation, ...]:
        """What waits for its confirmation."""
        version = self.scene.board.task_version
        return await self.scene.store.confirmations.pending(version, self.gpu)


def _of_time(evaluation: Evaluation, time_ns: float, half_width_ns: float) -> Evaluation:
    case = make_benchmark()
    assert case.measurement is not None
    times = {"time_ns": time_ns, "half_width_ns": half_width_ns, "bound_ns": time_ns}
    times["resolution_ns"] = 0.0
    ratio = {
        "vs_reference": Ratio(ratio=time_ns / 200.0, half_width=half_width_ns / 200.0, rounds=2)
    }
    measurement = case.measurement.model_copy(update=times | ratio)
    return evaluation.model_copy(
        update={"cases": (case.model_copy(update={"measurement": measurement}),)}
    )
