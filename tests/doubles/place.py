"""A store in memory with one person and one board, for the tests of services."""

from dataclasses import dataclass
from datetime import timedelta

from bot.domain.board import Board
from bot.domain.ids import JobId, PersonId
from bot.domain.job import Claim, Job
from bot.domain.publication import PublishRequest
from bot.domain.scoring import score
from bot.domain.submission import NewSubmission, Submission
from bot.services.publishing.publish import publish
from bot.services.submissions import submit
from bot.web.compat.evaluation_server.jobs import PRIORITY, requests_board
from runners.contract.evaluation import CPU, Evaluation
from runners.contract.task import Mode
from tests.doubles.clock import ManualClock
from tests.doubles.factories import make_evaluation, make_submission, make_task
from tests.doubles.memory_store import MemoryStore


@dataclass(frozen=True, slots=True)
class Place:
    """A store with its clock, the person `ada`, and her board `vectoradd`."""

    store: MemoryStore
    clock: ManualClock
    ada: PersonId
    board: Board

    async def person(self, name: str) -> PersonId:
        return (await self.store.people.ensure(f"local:{name}", name)).id

    async def submit(self, person: PersonId | None = None, **changes: object) -> Submission:
        request = make_submission(person or self.ada, **changes)
        return await submit(self.store, self.clock, request)

    async def asked(self) -> Submission:
        """A request of ada's to the evaluation server, stored on its board."""
        board = await requests_board(self.store)
        return await self.store.submissions.add(
            NewSubmission(
                person=self.ada,
                board=board.id,
                task_version=board.task_version,
                file_name="kernel.py",
                source="pass",
                mode=Mode.BENCHMARK,
                gpus=(CPU,),
                priority=PRIORITY,
            )
        )

    async def jobs(self, submission: Submission) -> tuple[Job, ...]:
        return await self.store.jobs.of(submission.id)

    async def claim(self, worker: str = "test", gpu: str = CPU) -> Job:
        """Claim the next job of a GPU type."""
        claim = Claim(worker, {gpu: 1}, timedelta(seconds=30))
        (job,) = await self.store.jobs.claim(claim)
        return job

    async def judged(self, submission: Submission, **changes: object) -> JobId:
        """Claim the next job, which must be this submission's, and store its evaluation."""
        job = await self.claim(gpu=submission.gpus[0])
        assert job.submission == submission.id
        usual = {"mode": submission.mode, "gpu": job.gpu}
        evaluation: Evaluation = make_evaluation(**(usual | changes))
        value = score(make_task(), evaluation)
        assert await self.store.jobs.accept(job.id, job.fence, evaluation, value)
        return job.id


async def make_place(store: MemoryStore, clock: ManualClock) -> Place:
    """A place in this store."""
    ada = (await store.people.ensure("local:ada", "ada")).id
    published = await publish(store, clock, PublishRequest(ada), make_task())
    return Place(store, clock, ada, published.board)
