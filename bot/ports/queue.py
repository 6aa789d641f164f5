"""The queue: jobs, workers, a worker's view of both, publications, and notices of changes."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Protocol

from bot.domain.ids import CheckRunId, EventId, JobId, PersonId, PublicationId, SubmissionId
from bot.domain.job import (
    Claim,
    GiveUpReason,
    Heartbeat,
    Job,
    JobEvent,
    LeasedJob,
    Notice,
    QueuedRun,
    Topic,
    UnfinishedJob,
    Worker,
)
from bot.domain.publication import NewPublication, Publication, PublicationSummary
from bot.domain.scoring import ScoreValue
from runners.contract.evaluation import Evaluation, EvaluationRequest, Progress
from runners.contract.runner import Capabilities

EMPTY: Mapping[str, Capabilities] = MappingProxyType({})


class Jobs(Protocol):
    """The queue: leases, fencing tokens, fair turns, and events."""

    async def claim(self, claim: Claim) -> tuple[Job, ...]:
        """Claim due jobs by priority, then turn, then age.

        Turns are fair: of the jobs stored before the first claim, each person's k-th comes before
        anyone's (k+1)-th. People who submit later join at the current turn (`next_turn` in the
        database). Never claims more than `slots` of a GPU type, and never lets more run than the
        GPU type's limit. A job pinned to a pool is claimed only by a worker of that pool. A job for
        which a quota of GPU time has no room waits (`Job.waits`), with all jobs like it. What was
        claimed is returned even if the store fails meanwhile, because no other process knows of it.
        """

    async def attach(self, job: JobId, fence: int, call: str) -> bool:
        """Record the runner's call id; False when the lease was lost."""

    async def heartbeat(
        self, worker: str, held: Sequence[tuple[JobId, int]], lease: timedelta
    ) -> tuple[Heartbeat, ...]:
        """Renew the leases of `(job, fence)` pairs; a job absent from the result is lost."""

    async def accept(
        self, job: JobId, fence: int, evaluation: Evaluation, score: ScoreValue | None
    ) -> bool:
        """Store the job's only evaluation and score; end the job. False when the lease was lost."""

    async def release(
        self, job: JobId, fence: int, error: str, *, final: bool, used_s: float = 0.0
    ) -> bool:
        """End an attempt that failed with an internal error: retry after a backoff, or FAILED.

        `final` fails at once. `used_s` is added to the job's. A job whose cancellation was
        requested becomes CANCELLED.
        """

    async def mark_lost(self, job: JobId, fence: int, error: str) -> bool:
        """End an attempt that was lost with its runner or worker: another one replaces it.

        Retry after a backoff, or FAILED after `MOST_ATTEMPTS` in total.
        """

    async def return_to_queue(self, job: JobId, fence: int) -> bool:
        """Return an untouched job to the queue at once; the attempt does not count."""

    async def end_cancelled(self, job: JobId, fence: int, used_s: float = 0.0) -> bool:
        """End a running job that was stopped at a person's request; what it used counts."""

    async def request_cancel(self, submission: SubmissionId, why: str | None = None) -> int:
        """Cancel queued jobs at once and notify the workers of running ones; return how many.

        `why` is the reason that their owner reads if an admin requests it.
        """

    async def unfinished_of(self, person: PersonId) -> tuple[SubmissionId, ...]:
        """Return a person's submissions with a queued or running job."""

    async def requeue_expired(self) -> int:
        """Requeue jobs with an expired lease, or fail them after the last attempt; return how many.

        `call` is kept: the next owner joins that call instead of starting a second one.
        """

    async def get(self, job: JobId) -> Job | None:
        """Return the job with this id."""

    async def of(self, submission: SubmissionId) -> tuple[Job, ...]:
        """Return a submission's jobs, by GPU type."""

    async def ahead(self, job: JobId) -> int:
        """Return how many queued jobs on the GPU type come before this one, due or not.

        For a pinned job, count those of its own pool and unpinned ones.
        """

    async def add_progress(
        self, job: JobId, fence: int, kind: str, body: dict[str, str | int]
    ) -> bool:
        """Add a progress event; False when the lease was lost."""

    async def events(self, submission: SubmissionId, after: EventId) -> tuple[JobEvent, ...]:
        """Return the events of a submission's jobs with ids above `after`, in order."""

    async def latest(self, submission: SubmissionId) -> tuple[JobEvent, ...]:
        """Return the newest event of each running job of a submission."""

    async def delete_events(self, age: timedelta) -> int:
        """Delete events of this age whose jobs ended as long ago; return how many."""

    async def limit(self, gpu: str, max_running: int | None, *, paused: bool = False) -> None:
        """Set how many jobs of a GPU type may run at once over all workers (None: no limit).

        While `paused`, none is started.
        """

    async def unfinished(
        self, gpus: Sequence[str], limit: int, person: PersonId | None = None
    ) -> tuple[UnfinishedJob, ...]:
        """Return people's jobs by GPU type: the running ones, then those that wait, in their order.

        At most `limit` of each state and type, and all of `person`, if given. The positions also
        count the runs of checks and the system's own jobs, which are not returned.
        """

    async def backlog(self) -> dict[str, dict[str, int]]:
        """Return the number of unfinished jobs by GPU type and state."""


class Workers(Protocol):
    """The live workers of all processes and machines."""

    async def announce(
        self,
        worker: str,
        gpus: Sequence[str] | None,
        lease: timedelta,
        offers: Mapping[str, Capabilities] = EMPTY,
    ) -> None:
        """Register this worker as live, with its offers, until the lease expires."""

    async def leave(self, worker: str) -> None:
        """Remove this worker from the live ones."""

    async def alive(self) -> tuple[Worker, ...]:
        """Return the workers whose lease has not expired, by name."""

    async def lost(self) -> tuple[Worker, ...]:
        """Return the workers whose lease expired within the last hour, by name."""

    async def reporting(self) -> frozenset[str]:
        """Return the names of the live workers that are not silent (`Worker.is_silent`)."""


NO_RUNNERS: Mapping[str, Mapping[str, int]] = MappingProxyType({})


class WorkerQueue(Protocol):
    """A worker's interface to the queue.

    A method that returns a bool returns False when the lease was lost; nothing was changed then.
    StoreError while the queue is unavailable, UserError when a remote queue no longer accepts this
    worker.
    """

    async def announce(self, offers: Mapping[str, Capabilities] | None) -> None:
        """Register this worker as live, with its runners' offers; None until all have answered."""

    async def leave(self) -> None:
        """Remove this worker from the live ones."""

    def notices(self) -> AbstractAsyncContextManager[AsyncIterator[Notice | None]]:
        """Yield notices of jobs to claim or to stop; some may be lost."""

    async def claim(
        self, slots: Mapping[str, int], runners: Mapping[str, Mapping[str, int]] = NO_RUNNERS
    ) -> tuple[LeasedJob, ...]:
        """Claim due jobs for these free slots by GPU type.

        `runners` has the free slots of each runner by GPU type, for jobs pinned to a pool.
        """

    async def request(self, job: LeasedJob) -> EvaluationRequest | None:
        """Return the evaluation request of a job; None when the lease was lost.

        LookupError when data of the job is missing.
        """

    async def heartbeat(self, held: Sequence[LeasedJob]) -> tuple[Heartbeat, ...]:
        """Renew leases; a job absent from the result is lost."""

    async def attach(self, job: LeasedJob, call: str) -> bool:
        """Record the runner's call id."""

    async def report_progress(self, job: LeasedJob, progress: Progress) -> bool:
        """Record one progress update."""

    async def accept(
        self, job: LeasedJob, request: EvaluationRequest, evaluation: Evaluation
    ) -> bool:
        """Store the evaluation with its score, and end the job."""

    async def give_up(
        self, job: LeasedJob, why: GiveUpReason, error: str = "", used_s: float = 0.0
    ) -> bool:
        """End the attempt without an evaluation; `used_s` is how many seconds it evaluated."""


class Clock(Protocol):
    """The time of day."""

    def now(self) -> datetime:
        """Return the current time, aware and in UTC."""


class Events(Protocol):
    """Notices from the store; some may be lost, so every subscriber also polls slowly."""

    def subscribe(
        self, topics: frozenset[Topic]
    ) -> AbstractAsyncContextManager[AsyncIterator[Notice | None]]:
        """Yield notices, and None at least about every second, even between notices."""


class Publications(Protocol):
    """Tasks waiting to be published, each held by one process under a lease."""

    async def add(self, publication: NewPublication) -> PublicationId:
        """Store it until it is finished."""

    async def claim(
        self, door: str, owner: str, lease: timedelta, limit: int = 1
    ) -> tuple[Publication, ...]:
        """Claim those that no process holds, oldest first; each claim counts as an attempt.

        Of one person, processes hold at most `PER_PERSON` of a front end at the same time.
        """

    async def renew(self, owner: str, lease: timedelta) -> tuple[PublicationId, ...]:
        """Renew the owner's leases; return what it still holds."""

    async def save_state(
        self,
        publication: PublicationId,
        owner: str,
        *,
        state: str | None = None,
        place: str | None = None,
    ) -> bool:
        """Store the given JSON values; False when another owner has taken over."""

    async def cancel(
        self, person: PersonId, why: str, publication: PublicationId | None = None
    ) -> tuple[PublicationId, ...]:
        """Cancel this person's publication, or all of them; return those that were cancelled.

        One that has ended or whose check has passed is not cancelled. The process that holds it
        ends it, with `why` as its outcome.
        """

    async def cancellation(self, publication: PublicationId) -> str | None:
        """Return why it was cancelled; None if it was not."""

    async def finish(self, publication: PublicationId, owner: str) -> bool:
        """Delete it once everything was reported; False when another owner has taken over."""

    async def end(self, publication: PublicationId, owner: str, *, keep_zip: bool = False) -> bool:
        """End it and keep its state for readers; False when another owner has taken over.

        Its zip is deleted. With `keep_zip` it replaces the kept zip of the same person.
        """

    async def repeat(
        self, door: str, publication: PublicationId, request: str
    ) -> PublicationId | None:
        """Store the kept zip of an ended publication again with this request.

        None when its zip was not kept, or was already used.
        """

    async def kept_zip(self, door: str, publication: PublicationId) -> bytes | None:
        """Return the kept zip of an ended publication; None when there is none, or it was used."""

    async def summary(
        self, door: str | None, publication: PublicationId
    ) -> PublicationSummary | None:
        """Return the state of a front end's publication that was not deleted; None: of any."""

    async def summaries_of(self, door: str, person: PersonId) -> tuple[PublicationSummary, ...]:
        """Return the states of a person's publications, newest first, at most a hundred."""

    async def delete_ended(self, ended_before: datetime) -> int:
        """Delete publications that ended before this time; return how many."""

    async def release_all(self, owner: str) -> int:
        """Let others claim what the owner holds; its attempts do not count. Return how many."""


class CheckRuns(Protocol):
    """The runs of tasks' checks: each is a job of the queue, deleted when its publication ends."""

    async def store_task(self, publication: PublicationId, digest: str, definition: str) -> None:
        """Store a task as JSON for the runs of a check, unless the publication has ended."""

    async def add(
        self, publication: PublicationId, key: str, request: EvaluationRequest, digest: str
    ) -> JobId | None:
        """Queue a run in its person's turn among ranked jobs; return its job.

        Its task was stored under `digest`. The same key returns the job that was queued first. None
        when the publication has ended or is cancelled.
        """

    async def get(self, job: JobId) -> QueuedRun | None:
        """Return the run of this job; None when its publication has ended or is cancelled."""

    async def request(self, run: CheckRunId) -> EvaluationRequest | None:
        """Return what is to be run; None when its publication has ended."""

    async def save_progress(self, job: JobId, fence: int, progress: Progress) -> bool:
        """Store the newest progress; False when the lease was lost."""

    async def accept(self, job: JobId, fence: int, evaluation: Evaluation) -> bool:
        """Store the evaluation and end the job; False when the lease was lost."""
