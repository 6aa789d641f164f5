"""Creates rows in a store: tasks, boards, people, submissions and evaluations."""

from dataclasses import dataclass
from datetime import timedelta

from bot.domain.accounts import Person
from bot.domain.board import Board, NewBoard
from bot.domain.ids import SubmissionId
from bot.domain.job import PRIORITIES, Claim, Job
from bot.domain.submission import IdempotencyKey, NewSubmission, Submission
from bot.ports import Store
from runners.contract.evaluation import (
    CaseKind,
    CaseResult,
    CaseStatus,
    Environment,
    Evaluation,
    Isolation,
    Measurement,
    ProfileOptions,
    StopReason,
)
from runners.contract.task import Mode, TaskDefinition, Workload
from runners.contract.verdict import Stage, Verdict

LEASE = timedelta(seconds=30)


def make_task(name: str = "vectoradd", **changes: object) -> TaskDefinition:
    """A valid task with one test and one benchmark."""
    values: dict[str, object] = {
        "name": name,
        "lang": "py",
        "description": "adds two vectors",
        "files": {"reference.py": "def check_implementation(): ..."},
        "tests": (Workload(args={"size": 8, "seed": 1}),),
        "benchmarks": (Workload(args={"size": 1024, "seed": 2}),),
    }
    return TaskDefinition.model_validate(values | changes)


def make_environment() -> Environment:
    """A machine without a GPU."""
    return Environment(
        gpu="CPU",
        python="3.11",
        cpu="x",
        cores=2,
        platform="linux",
        harness_version="1",
        transport="shared-memory",
    )


def make_evaluation(
    verdict: Verdict = Verdict.PASSED, message: str = "", mode: Mode = Mode.RANKED
) -> Evaluation:
    """An evaluation with one timed benchmark, or one that ended before any case."""
    passed = verdict is Verdict.PASSED
    return Evaluation(
        request_id="r1",
        verdict=verdict,
        stage=None if passed else Stage.TEST,
        message=message,
        mode=mode,
        task="vectoradd",
        gpu="CPU",
        cases=(make_benchmark(),) if passed else (),
        environment=make_environment(),
        isolation=Isolation(outer="none"),
        wall_s=1.5,
    )


def make_benchmark() -> CaseResult:
    """A passed benchmark with the raw samples of two rounds."""
    measurement = Measurement(
        time_ns=1500.0,
        half_width_ns=3.5,
        bound_ns=1490.0,
        resolution_ns=20.0,
        rounds=2,
        samples=((1500.25, 1499.5), (1501.0, 1500.125)),
        stop_reason=StopReason.PRECISE,
    )
    return CaseResult(
        spec="size: 1024; seed: 2",
        kind=CaseKind.BENCHMARK,
        status=CaseStatus.PASSED,
        measurement=measurement,
    )


@dataclass(frozen=True, slots=True)
class Scene:
    """A board, and a person who can submit to it."""

    store: Store
    board: Board
    ada: Person

    async def submit(
        self,
        person: Person | None = None,
        gpus: tuple[str, ...] = ("CPU",),
        mode: Mode = Mode.RANKED,
        *,
        source: str = "def custom_kernel(data): ...",
        judged_again: bool = False,
        key: IdempotencyKey | None = None,
        profile: ProfileOptions | None = None,
        limit_s: float = 0.0,
        cards: int = 1,
    ) -> Submission:
        """Store a submission with one job per GPU."""
        new = NewSubmission(
            person=(person or self.ada).id,
            board=self.board.id,
            task_version=self.board.task_version,
            file_name="kernel.py",
            source=source,
            mode=mode,
            gpus=gpus,
            priority=PRIORITIES[mode],
            judged_again=judged_again,
            idempotency_key=key,
            profile=profile,
            limit_s=limit_s,
            cards=cards,
        )
        return await self.store.submissions.add(new)

    async def claim(self, slots: int = 1, gpu: str = "CPU", worker: str = "w1") -> tuple[Job, ...]:
        """Claim up to this many jobs of one GPU type."""
        return await self.store.jobs.claim(Claim(worker, {gpu: slots}, LEASE))

    async def claim_one(self, gpu: str = "CPU", worker: str = "w1") -> Job:
        """Claim the only job."""
        (job,) = await self.claim(1, gpu, worker)
        return job

    async def job(self, submission: SubmissionId) -> Job:
        """The submission's only job as it is now."""
        (job,) = await self.store.jobs.of(submission)
        return job


async def set_up(store: Store) -> Scene:
    """A store with one board and one person."""
    ada = await store.people.ensure("local:ada", "Ada")
    new = NewBoard("vectoradd", ("CPU",), None, ada.id)
    board = await store.boards.publish(new, make_task(), "digest-1")
    return Scene(store, board, ada)
