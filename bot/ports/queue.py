"""The queue: jobs, workers, a worker's view of both, and hints that something changed."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Protocol

from bot.domain.ids import EventId, JobId, PersonId, SubmissionId
from bot.domain.job import (
    Claim,
    GiveUpReason,
    Heartbeat,
    Job,
    JobEvent,
    LeasedJob,
    Notice,
    Topic,
    Worker,
)
from bot.domain.scoring import ScoreValue
from runners.contract.evaluation import Evaluation, EvaluationRequest, Progress
from runners.contract.runner import Capabilities

EMPTY: Mapping[str, Capabilities] = MappingProxyType({})


class Jobs(Protocol):
    """The queue: leases, fences, fair turns, and events."""

    async def claim(self, claim: Claim) -> tuple[Job, ...]:
        """Take due jobs by priority, then turn, then age.

        What was claimed is given even when the store fails on the way: nobody else knows of it.
        Of jobs stored before the first claim, everyone's k-th comes before anyone's (k+1)-th; who
        comes later joins at the present turn (`next_turn` in the database). Never more than `slots`
        of a GPU type, nor more than its limit in all. A job that is pinned to a pool is claimed
        only by a worker of that pool.
        """

    async def attach(self, job: JobId, fence: int, call: str) -> bool:
        """Note the runner's call id; False when the lease was lost."""

    async def beat(
        self, worker: str, held: Sequence[tuple[JobId, int]], lease: timedelta
    ) -> tuple[Heartbeat, ...]:
        """Prolong the leases of `(job, fence)` pairs; a job absent from the answer is lost."""

    async def accept(
        self, job: JobId, fence: int, evaluation: Evaluation, score: ScoreValue | None
    ) -> bool:
        """Store the job's one evaluation and its score, and end the job; False when fenced off."""

    async def release(self, job: JobId, fence: int, error: str, *, final: bool) -> bool:
        """Give up an attempt for our own fault: again after a backoff, or FAILED at the last one.

        `final` gives up at once. A job whose cancellation was asked for becomes CANCELLED.
        """

    async def lose(self, job: JobId, fence: int, error: str) -> bool:
        """Give up an attempt that was lost with its runner or its worker: another replaces it.

        Again after a backoff, or FAILED after `MOST_ATTEMPTS` in all.
        """

    async def give_back(self, job: JobId, fence: int) -> bool:
        """Return an untouched job to the queue at once, without counting the attempt (a drain)."""

    async def end_cancelled(self, job: JobId, fence: int) -> bool:
        """End a running job whose work was stopped because a person asked."""

    async def request_cancel(self, submission: SubmissionId) -> int:
        """Cancel queued jobs at once and ask the workers of running ones; gives how many."""

    async def unfinished_of(self, person: PersonId) -> tuple[SubmissionId, ...]:
        """A person's submissions of which some job is queued or runs."""

    async def reap(self) -> int:
        """Requeue, or fail after the last attempt, the jobs whose lease ran out; gives how many.

        `call` is kept, so that the next owner re-attaches instead of running twice.
        """

    async def get(self, job: JobId) -> Job | None:
        """The job of this id."""

    async def of(self, submission: SubmissionId) -> tuple[Job, ...]:
        """A submission's jobs, by GPU."""

    async def ahead(self, job: JobId) -> int:
        """How many queued jobs of the GPU type are now in line before this one, due or not.

        Before a pinned job, those of its own pool and those of any.
        """

    async def tell(self, job: JobId, fence: int, kind: str, body: dict[str, str | int]) -> bool:
        """Add a progress event; False when the lease was lost."""

    async def events(self, submission: SubmissionId, after: EventId) -> tuple[JobEvent, ...]:
        """The events of a submission's jobs with ids above `after`, in order."""

    async def latest(self, submission: SubmissionId) -> tuple[JobEvent, ...]:
        """The newest event of each running job of a submission."""

    async def forget_events(self, age: timedelta) -> int:
        """Remove the events of this age of jobs that ended as long ago; gives how many."""

    async def limit(self, gpu: str, max_running: int | None, *, paused: bool = False) -> None:
        """Set how many jobs of a GPU type may run at once over all workers (None: no limit)."""

    async def backlog(self) -> dict[str, dict[str, int]]:
        """The number of jobs by GPU type and state, of the states that are not final."""


class Workers(Protocol):
    """The workers that live, over all processes and machines."""

    async def announce(
        self,
        worker: str,
        gpus: Sequence[str] | None,
        lease: timedelta,
        offers: Mapping[str, Capabilities] = EMPTY,
    ) -> None:
        """Count this worker among the living, with what it offers, until the lease runs out."""

    async def leave(self, worker: str) -> None:
        """Count it no more."""

    async def alive(self) -> tuple[Worker, ...]:
        """Those whose lease has not run out, by name."""

    async def reporting(self) -> frozenset[str]:
        """The names of those among them that missed no heartbeats."""


NO_RUNNERS: Mapping[str, Mapping[str, int]] = MappingProxyType({})


class WorkerQueue(Protocol):
    """Claims, leases and what comes of them; StoreError while the queue is away.

    UserError when it will not have this worker any more, as one elsewhere may say.

    What gives a bool gives False when the lease was lost: then nothing was changed.
    """

    async def announce(self, offers: Mapping[str, Capabilities] | None) -> None:
        """Count this worker among the living, with what each of its runners offers.

        None while they have not all been asked.
        """

    async def leave(self) -> None:
        """Count it no more."""

    def notices(self) -> AbstractAsyncContextManager[AsyncIterator[Notice | None]]:
        """Hints that work is there or is to be stopped; some may be lost."""

    async def claim(
        self, slots: Mapping[str, int], runners: Mapping[str, Mapping[str, int]] = NO_RUNNERS
    ) -> tuple[LeasedJob, ...]:
        """Take due jobs for so many free slots by GPU type.

        `runners` has the free slots of each runner by GPU type, for jobs that are pinned to a pool.
        """

    async def request(self, job: LeasedJob) -> EvaluationRequest | None:
        """The complete order for a job; None when the lease was lost.

        LookupError when something of the job is not there.
        """

    async def beat(self, held: Sequence[LeasedJob]) -> tuple[Heartbeat, ...]:
        """Prolong leases; a job absent from the answer is lost."""

    async def attach(self, job: LeasedJob, call: str) -> bool:
        """Note the runner's call id."""

    async def tell(self, job: LeasedJob, progress: Progress) -> bool:
        """Note one step."""

    async def accept(
        self, job: LeasedJob, request: EvaluationRequest, evaluation: Evaluation
    ) -> bool:
        """Store the evaluation with its score, and end the job."""

    async def give_up(self, job: LeasedJob, why: GiveUpReason, error: str = "") -> bool:
        """End the attempt without an evaluation."""


class Clock(Protocol):
    """The time of day."""

    def now(self) -> datetime:
        """The present, aware and in UTC."""


class Events(Protocol):
    """Hints from the store; they may be lost, so every waiter polls slowly as well."""

    def subscribe(
        self, topics: frozenset[Topic]
    ) -> AbstractAsyncContextManager[AsyncIterator[Notice | None]]:
        """Yields notices, and None at least about every second, be there notices or not."""
