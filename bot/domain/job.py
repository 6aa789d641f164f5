"""A job: one submission on one GPU type, or one run of a check; its states in the queue."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from bot.domain.ids import (
    BoardId,
    CheckRunId,
    EventId,
    JobId,
    PersonId,
    SubmissionId,
    is_system_submission,
)
from bot.domain.submission import SubmissionState
from runners.contract.evaluation import Evaluation, Progress
from runners.contract.runner import Capabilities
from runners.contract.task import Mode


class JobState(StrEnum):
    """The states of a job; the last three are final."""

    QUEUED = "queued"
    """Waiting for a worker, perhaps until a later time."""
    RUNNING = "running"
    """A worker holds the lease."""
    SUCCEEDED = "succeeded"
    """An evaluation was accepted, whatever its verdict."""
    FAILED = "failed"
    """Given up after the last attempt, or after a permanent error."""
    CANCELLED = "cancelled"
    """Stopped by a person."""


FINAL_STATES = frozenset({JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED})

PRIORITIES = {Mode.TEST: 30, Mode.BENCHMARK: 20, Mode.PROFILE: 20, Mode.RANKED: 10}
"""Jobs with a higher number are claimed first: a quick test never waits behind ranked jobs."""


CHECK_PRIORITY = PRIORITIES[Mode.RANKED]
"""The priority of the runs of a check: they take fair turns with everybody's ranked jobs."""
CHECK_ATTEMPTS = 3


SYSTEM_PRIORITY = 0
"""The priority of the jobs that time references: all other jobs go first."""


MOST_ATTEMPTS = 12
"""The most attempts at one job, including lost ones: a job that crashes its worker must end too."""


@dataclass(frozen=True, slots=True)
class Job:
    """A stored job; each write of a worker names `fence`, which grows with every claim."""

    id: JobId
    submission: SubmissionId
    person: PersonId
    gpu: str
    mode: Mode
    priority: int
    turn: int
    state: JobState
    attempt: int
    max_attempts: int
    fence: int
    worker: str | None
    call: str | None
    cancel_requested: bool
    error: str | None
    run_at: datetime
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    pool: str = ""
    """The only pool whose workers may claim it, see `bot.domain.board`; empty: any."""
    check_run: CheckRunId | None = None
    """The run of a check; then `submission` is NO_SUBMISSION."""
    used_s: float = 0.0
    """Seconds of evaluation in attempts that failed; lost ones do not count."""
    limit_s: float = 0.0
    """The most seconds that it may take; while it runs, they are reserved for each of its cards."""
    cards: int = 1
    """How many GPUs it uses."""
    waits: str = ""
    """The quota of GPU time that it waits for, in words; empty: none."""

    @property
    def leased(self) -> "LeasedJob":
        """Return what its worker needs to know of it."""
        return LeasedJob(
            id=self.id,
            submission=self.submission,
            gpu=self.gpu,
            mode=self.mode,
            fence=self.fence,
            call=self.call,
            created_at=self.created_at,
            pool=self.pool,
            check_run=self.check_run,
            used_s=self.used_s,
        )


@dataclass(frozen=True, slots=True)
class UnfinishedJob:
    """A job of a person's submission that runs or waits."""

    submission: SubmissionId
    person: PersonId
    person_name: str
    board: BoardId
    gpu: str
    mode: Mode
    state: JobState
    since: datetime
    """When it was started; if it waits, when it was stored."""
    position: int
    """Its position, from 1, among the jobs of its GPU type that wait, or among those that run."""


@dataclass(frozen=True, slots=True)
class LeasedJob:
    """A job as its worker knows it; the worker holds it while `fence` is current."""

    id: JobId
    submission: SubmissionId
    gpu: str
    mode: Mode
    fence: int
    call: str | None
    created_at: datetime
    pool: str = ""
    """The only pool that may run it; empty: any."""
    check_run: CheckRunId | None = None
    """The run of a check; always None at a remote worker: `ClaimedJob` has no such field."""
    used_s: float = 0.0
    """Seconds that failed attempts used; a remote worker gets them with the evaluation request."""

    @property
    def is_system_job(self) -> bool:
        """Return whether it is the system's own: it times a reference or confirms a submission."""
        return is_system_submission(self.submission)


@dataclass(frozen=True, slots=True)
class QueuedRun:
    """A job that runs one solution of a task's check; `evaluation` is set once it succeeded."""

    job: JobId
    gpu: str
    state: JobState
    error: str | None = None
    progress: Progress | None = None
    evaluation: Evaluation | None = None
    waits: str = ""
    """The quota of GPU time that it waits for; empty: none."""


class GiveUpReason(StrEnum):
    """Why a worker gives up a claimed job without an evaluation."""

    FAILED = "failed"
    """The attempt failed with an internal error; another may succeed."""
    HOPELESS = "hopeless"
    """No further attempt can succeed."""
    LOST = "lost"
    """The attempt was lost with its runner or worker; another one replaces it."""
    UNTOUCHED = "untouched"
    """Nothing that counts was done yet: the job returns to the queue at once."""
    CANCELLED = "cancelled"
    """A person asked to stop it."""


@dataclass(frozen=True, slots=True)
class JobEvent:
    """One step of a job, for watchers; `kind` is a state or a stage."""

    id: EventId
    job: JobId
    submission: SubmissionId
    kind: str
    body: dict[str, str | int]
    at: datetime


@dataclass(frozen=True, slots=True)
class Claim:
    """A worker's request for jobs: free slots by GPU type, and how long the lease holds."""

    worker: str
    slots: dict[str, int]
    lease: timedelta
    pools: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By GPU type and pool, how many slots belong to the pool and may take jobs pinned to it.

    A GPU type that is not listed gets no pinned jobs.
    """


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The reply to a heartbeat for a job whose lease still holds."""

    job: JobId
    cancel_requested: bool


SILENT_AFTER = timedelta(seconds=15)
"""How long a worker may be without a heartbeat: as long as three of them take."""


@dataclass(frozen=True, slots=True)
class Worker:
    """A live worker; `gpus` is None until its runners have answered.

    `offers` has the offer of each runner; empty when it cannot be read, because a worker of another
    version may have written it. `running` counts the jobs that it holds.
    """

    name: str
    gpus: tuple[str, ...] | None
    offers: Mapping[str, Capabilities] = field(default_factory=dict, compare=False)
    seen_at: datetime | None = field(default=None, compare=False)
    running: int = field(default=0, compare=False)

    def is_silent(self, now: datetime) -> bool:
        """Return whether it missed heartbeats; it is then probably lost."""
        return self.seen_at is not None and now - self.seen_at > SILENT_AFTER


class Topic(StrEnum):
    """What a subscriber can listen for."""

    READY = "ready"
    """Work became claimable; the payload is the GPU type."""
    CANCEL = "cancel"
    """A running job should stop; the payload is the job's id."""
    PROGRESS = "progress"
    """A submission's job changed; the payload is the submission's id."""


@dataclass(frozen=True, slots=True)
class Notice:
    """A hint that something changed; the state itself is read from the store."""

    topic: Topic
    payload: str


def backoff(attempt: int) -> timedelta:
    """Return how long a job waits after its `attempt`-th failure: 2, 4, 8 s ... at most 60 s."""
    return timedelta(seconds=min(60, 2**attempt))


def attempts_after_loss(max_attempts: int) -> int:
    """Return the allowed attempts after one was lost with its worker, runner or database.

    The result of such an attempt is unknown, so another one replaces it.
    """
    return max(max_attempts, min(max_attempts + 1, MOST_ATTEMPTS))


def submission_state(states: tuple[JobState, ...]) -> SubmissionState:
    """Return the state of a submission whose jobs are in these states."""
    if all(state is JobState.QUEUED for state in states):
        return SubmissionState.QUEUED
    if any(state not in FINAL_STATES for state in states):
        return SubmissionState.RUNNING
    if JobState.FAILED in states:
        return SubmissionState.FAILED
    if JobState.CANCELLED in states:
        return SubmissionState.CANCELLED
    return SubmissionState.FINISHED


def after_failure(
    job: Job, error: str, now: datetime, *, final: bool = False, used_s: float = 0.0
) -> Job:
    """Return the updated job after an attempt that failed with an internal error.

    Its runner call has failed too, so the next attempt starts a new one.
    """
    ended = _retry_or_end(job, error, now, final=final)
    return replace(ended, call=None, used_s=job.used_s + used_s)


def after_loss(job: Job, error: str, now: datetime) -> Job:
    """Return the updated job after its worker reported that the runner was lost."""
    return replace(_replace_lost_attempt(job, error, now), call=None)


def after_lost_lease(job: Job, now: datetime) -> Job:
    """Return the updated job after its worker vanished; its call may still run, so it is kept."""
    error = f"the worker vanished during attempt {job.attempt}"
    return _replace_lost_attempt(job, error, now)


def after_return(job: Job, now: datetime) -> Job:
    """Return the updated job after its worker returned it untouched."""
    if job.cancel_requested:
        return _end(job, JobState.CANCELLED, now)
    return replace(
        job, state=JobState.QUEUED, attempt=job.attempt - 1, worker=None, run_at=now, error=None
    )


def after_request(job: Job, now: datetime, why: str | None) -> Job:
    """Return the unfinished job after a request to cancel it; `why` is an admin's reason."""
    if job.state is JobState.QUEUED:
        return _end(replace(job, error=why), JobState.CANCELLED, now)
    return replace(job, cancel_requested=True, error=why)


def after_cancel(job: Job, now: datetime) -> Job:
    """Return the updated job after its worker has stopped it on request."""
    return _end(job, JobState.CANCELLED, now)


def _replace_lost_attempt(job: Job, error: str, now: datetime) -> Job:
    replaced = replace(job, max_attempts=attempts_after_loss(job.max_attempts))
    return _retry_or_end(replaced, error, now)


def _retry_or_end(job: Job, error: str, now: datetime, *, final: bool = False) -> Job:
    if job.cancel_requested:  # keeps the reason that the request stored
        return _end(job, JobState.CANCELLED, now)
    failed = replace(job, error=error)
    if final or job.attempt >= job.max_attempts:
        return _end(failed, JobState.FAILED, now)
    return replace(failed, state=JobState.QUEUED, worker=None, run_at=now + backoff(job.attempt))


def _end(job: Job, state: JobState, now: datetime) -> Job:
    return replace(job, state=state, finished_at=now)
