"""What services need from outside, by role; `bot.store` offers each in Postgres and in memory."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from bot.domain.board import Board, NewBoard, TaskVersion
from bot.domain.display import Display
from bot.domain.ids import BoardId, EventId, JobId, PersonId, SubmissionId, TaskVersionId
from bot.domain.job import Job, JobEvent
from bot.domain.person import Person
from bot.domain.score import Score, ScoreValue
from bot.domain.submission import NewSubmission, Submission
from runners.contract.evaluation import Evaluation
from runners.contract.task import TaskDefinition


class Clock(Protocol):
    """The time of day."""

    def now(self) -> datetime:
        """The present, aware and in UTC."""


class People(Protocol):
    """Accounts."""

    async def ensure(self, identity: str, name: str) -> Person:
        """The person of this identity, made when new; a changed name is taken over."""

    async def get(self, person: PersonId) -> Person | None: ...

    async def find(self, identity: str) -> Person | None: ...


class Boards(Protocol):
    """Boards and the versions of their tasks."""

    async def publish(self, board: NewBoard, task: TaskDefinition, digest: str) -> Board:
        """Store a board with version 1 of its task; UserError `board-exists` for a taken name."""

    async def add_version(self, board: BoardId, task: TaskDefinition, digest: str) -> TaskVersion:
        """Make the task the board's next version; the same digest gives the version there is."""

    async def configure(
        self, board: BoardId, gpus: tuple[str, ...], deadline: datetime | None
    ) -> Board:
        """Change a board's GPU types and deadline."""

    async def find(self, name: str) -> Board | None: ...

    async def get(self, board: BoardId) -> Board | None: ...

    async def all(self) -> tuple[Board, ...]:
        """Every board, by name."""

    async def version(self, version: TaskVersionId) -> TaskVersion | None: ...

    async def versions(self, board: BoardId) -> tuple[TaskVersion, ...]:
        """A board's versions, oldest first."""


class Submissions(Protocol):
    """Submissions and their sources."""

    async def add(self, submission: NewSubmission) -> Submission:
        """Store submission, jobs and display in one transaction, and tell the workers."""

    async def get(self, submission: SubmissionId) -> Submission | None: ...

    async def source(self, submission: SubmissionId) -> str:
        """The submitted text."""

    async def history(
        self,
        person: PersonId,
        board: BoardId | None = None,
        before: SubmissionId | None = None,
        limit: int = 50,
    ) -> tuple[Submission, ...]:
        """A person's submissions, newest first, with ids below `before`."""


@dataclass(frozen=True, slots=True)
class Beat:
    """The answer to a heartbeat for a job whose lease is still held."""

    job: JobId
    cancel_requested: bool


@dataclass(frozen=True, slots=True)
class Claim:
    """Who asks for work: which GPU types, how much of each, and for how long the lease holds."""

    worker: str
    slots: dict[str, int]
    lease: timedelta


class Jobs(Protocol):
    """The queue: leases, fences, fair turns, and events."""

    async def claim(self, claim: Claim) -> tuple[Job, ...]:
        """Take due jobs by `bot.domain.job.place_in_line`: priority, then turn, then age.

        Of jobs stored before the first claim, everyone's k-th comes before anyone's (k+1)-th; who
        comes later joins at the present turn (`bot.domain.job.next_turn`). Never more than `slots`
        of a GPU type, nor more than its pool's limit in all.
        """

    async def attach(self, job: JobId, fence: int, call: str) -> bool:
        """Note the runner's call id; False when the lease was lost."""

    async def beat(
        self, worker: str, held: Sequence[tuple[JobId, int]], lease: timedelta
    ) -> tuple[Beat, ...]:
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

    async def reap(self) -> int:
        """Requeue, or fail after the last attempt, the jobs whose lease ran out; gives how many.

        `call` is kept, so that the next owner re-attaches instead of running twice.
        """

    async def of(self, submission: SubmissionId) -> tuple[Job, ...]:
        """A submission's jobs, by GPU."""

    async def ahead(self, job: JobId) -> int:
        """How many queued jobs of the pool are now in line before this one, due or not."""

    async def tell(self, job: JobId, fence: int, kind: str, body: dict[str, str | int]) -> bool:
        """Add a progress event; False when the lease was lost."""

    async def events(self, submission: SubmissionId, after: EventId) -> tuple[JobEvent, ...]:
        """The events of a submission's jobs with ids above `after`, in order."""

    async def limit(self, gpu: str, max_running: int | None, *, paused: bool = False) -> None:
        """Set how many jobs of a GPU type may run at once over all workers (None: no limit)."""

    async def backlog(self) -> dict[str, dict[str, int]]:
        """The number of jobs by GPU type and state, of the states that are not final."""


@dataclass(frozen=True, slots=True)
class StoredEvaluation:
    """An accepted evaluation with its job."""

    job: JobId
    gpu: str
    evaluation: Evaluation
    at: datetime


@dataclass(frozen=True, slots=True)
class Refusal:
    """A ranked evaluation that did not pass, so that a board can say who is absent and why."""

    submission: SubmissionId
    person: PersonId
    person_name: str
    gpu: str
    verdict: str
    stage: str | None
    message: str
    submitted_at: datetime


class Results(Protocol):
    """Accepted evaluations and scores."""

    async def evaluations(self, submission: SubmissionId) -> tuple[StoredEvaluation, ...]:
        """The accepted evaluations, by GPU."""

    async def scores(self, version: TaskVersionId, gpu: str) -> tuple[Score, ...]:
        """Every score of one task version on one GPU type."""

    async def refusals(self, version: TaskVersionId, gpu: str) -> tuple[Refusal, ...]:
        """The ranked evaluations that did not pass, newest first, at most 200."""

    async def durations(self, version: TaskVersionId, gpu: str, limit: int) -> tuple[float, ...]:
        """How many seconds each of the newest evaluations took, whatever its mode and verdict."""


@dataclass(frozen=True, slots=True)
class AuditRow:
    """Who did what to what, when and why."""

    actor: PersonId | None
    action: str
    subject: str
    reason: str
    at: datetime


class Audit(Protocol):
    """The record of decisions; rows are never changed."""

    async def record(
        self, actor: PersonId | None, action: str, subject: str, reason: str
    ) -> None: ...

    async def rows(self, limit: int = 100) -> tuple[AuditRow, ...]:
        """The newest rows first."""


class Displays(Protocol):
    """Who shows which submission: at most one process of a door at a time, by leases."""

    async def claim(
        self, door: str, owner: str, lease: timedelta, limit: int = 1000
    ) -> tuple[Display, ...]:
        """Take unfinished displays that nobody holds, oldest first."""

    async def keep(self, owner: str, lease: timedelta) -> tuple[SubmissionId, ...]:
        """Prolong the owner's leases; gives what it still holds."""

    async def note(self, submission: SubmissionId, owner: str, place: str) -> bool:
        """Write down how far the display has got; False when another owner has taken over."""

    async def finish(self, submission: SubmissionId, owner: str, place: str) -> bool:
        """Everything is shown; False when another owner has taken over."""

    async def let_go(self, owner: str) -> int:
        """Give back what the owner holds, for the next one to take at once; gives how many."""

    async def find(self, submission: SubmissionId) -> Display | None:
        """The display of a submission, finished or not."""


class Topic(StrEnum):
    """What a subscriber can wait for."""

    READY = "ready"
    """Work became claimable; the payload is the GPU type."""
    CANCEL = "cancel"
    """A running job should stop; the payload is the job's id."""
    PROGRESS = "progress"
    """A submission's job moved; the payload is the submission's id."""


@dataclass(frozen=True, slots=True)
class Notice:
    """A hint that something changed: never the truth itself, which is read from the store."""

    topic: Topic
    payload: str


class Events(Protocol):
    """Hints from the store; they may be lost, so every waiter polls slowly as well."""

    def subscribe(
        self, topics: frozenset[Topic]
    ) -> AbstractAsyncContextManager[AsyncIterator[Notice | None]]:
        """Yields a notice, or None about every second when there was none."""


class Store(Protocol):
    """Every role of the store at once."""

    @property
    def people(self) -> People: ...
    @property
    def boards(self) -> Boards: ...
    @property
    def submissions(self) -> Submissions: ...
    @property
    def jobs(self) -> Jobs: ...
    @property
    def results(self) -> Results: ...
    @property
    def displays(self) -> Displays: ...
    @property
    def audit(self) -> Audit: ...
    @property
    def events(self) -> Events: ...
