"""A job: one submission on one GPU type, and how it moves through the queue."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from bot.domain.ids import EventId, JobId, PersonId, SubmissionId, is_the_houses
from bot.domain.submission import SubmissionState
from runners.contract.task import Mode


class JobState(StrEnum):
    """The states of a job; the last four are final."""

    QUEUED = "queued"
    """Waiting for a worker, perhaps until a later time."""
    RUNNING = "running"
    """A worker holds the lease."""
    SUCCEEDED = "succeeded"
    """An evaluation was accepted, whatever its verdict."""
    FAILED = "failed"
    """Given up after the last attempt, or after an error that will not go away."""
    CANCELLED = "cancelled"
    """Stopped by a person."""


FINAL_STATES = frozenset({JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED})

PRIORITIES = {Mode.TEST: 30, Mode.BENCHMARK: 20, Mode.PROFILE: 20, Mode.RANKED: 10}
"""Higher is claimed first, so that a quick test never waits behind a ranked backlog."""


HOUSE_PRIORITY = 0
"""Of the house's own jobs, which time references: everybody's go first."""


MOST_ATTEMPTS = 12
"""Of one job in all, however many were lost: a job that kills what it touches must end too."""


@dataclass(frozen=True, slots=True)
class Job:
    """A stored job; every write of a worker names `fence`, which grows with every claim."""

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
    """The pool whose workers alone may claim it, see `bot.domain.pins`; empty: any."""

    @property
    def of_the_house(self) -> bool:
        """Whether it times a task's reference."""
        return is_the_houses(self.submission)

    @property
    def leased(self) -> "LeasedJob":
        """What its worker needs to know of it."""
        return LeasedJob(
            id=self.id,
            submission=self.submission,
            gpu=self.gpu,
            mode=self.mode,
            fence=self.fence,
            call=self.call,
            created_at=self.created_at,
            pool=self.pool,
        )


@dataclass(frozen=True, slots=True)
class LeasedJob:
    """A job as the worker knows it that has claimed it; it is the worker's while `fence` holds."""

    id: JobId
    submission: SubmissionId
    gpu: str
    mode: Mode
    fence: int
    call: str | None
    created_at: datetime
    pool: str = ""
    """The pool that alone may do it; empty: any."""

    @property
    def of_the_house(self) -> bool:
        """Whether it times a task's reference."""
        return is_the_houses(self.submission)


class Ending(StrEnum):
    """Why a worker gives up a job that it has claimed, without an evaluation of it."""

    FAILED = "failed"
    """The attempt failed for a fault of ours; another may not."""
    HOPELESS = "hopeless"
    """No further attempt can do better."""
    LOST = "lost"
    """The attempt went with its runner or its worker; another one replaces it."""
    UNTOUCHED = "untouched"
    """Nothing was done yet, or nothing that counts: it goes back at once."""
    CANCELLED = "cancelled"
    """A person asked for its end."""


@dataclass(frozen=True, slots=True)
class JobEvent:
    """One step of a job, for those who watch; `kind` is a state or a stage."""

    id: EventId
    job: JobId
    submission: SubmissionId
    kind: str
    body: dict[str, str | int]
    at: datetime


def next_turn(present: int, waiting: int) -> int:
    """The turn of a new job, which it keeps; turns are counted per GPU type and priority.

    `present` is the highest turn that was claimed so far, `waiting` the highest of this person's
    own queued jobs; 0 where there is none. So a newcomer joins at the present turn and not behind
    the backlogs, nobody saves up turns by staying away, a cancelled job costs nobody a turn, and
    nobody starves: a job whose turn is the next one is never overtaken any more.
    """
    return 1 + max(present, waiting)


def place_in_line(job: Job) -> tuple[int, int, JobId]:
    """What sorts the due jobs of a GPU type into the order in which they are claimed."""
    return -job.priority, job.turn, job.id


def backoff(attempt: int) -> timedelta:
    """How long a job waits after its `attempt`-th failed attempt: 2, 4, 8 s ... at most 60 s."""
    return timedelta(seconds=min(60, 2**attempt))


def attempts_after_loss(max_attempts: int) -> int:
    """How many attempts a job may have once one was lost with its worker, runner or database.

    Nobody knows what such an attempt would have given, so another one replaces it.
    """
    return max(max_attempts, min(max_attempts + 1, MOST_ATTEMPTS))


def submission_state(states: tuple[JobState, ...]) -> SubmissionState:
    """The state of a submission whose jobs are in these states."""
    if all(state is JobState.QUEUED for state in states):
        return SubmissionState.QUEUED
    if any(state not in FINAL_STATES for state in states):
        return SubmissionState.RUNNING
    if JobState.FAILED in states:
        return SubmissionState.FAILED
    if JobState.CANCELLED in states:
        return SubmissionState.CANCELLED
    return SubmissionState.FINISHED
