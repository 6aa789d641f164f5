"""What is kept for good: accounts, boards, submissions, results and decisions."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from bot.domain.access import Access
from bot.domain.board import Board, NewBoard, TaskVersion
from bot.domain.ids import BoardId, JobId, PersonId, SubmissionId, TaskVersionId
from bot.domain.person import Person
from bot.domain.score import Score, ScoreValue
from bot.domain.submission import NewSubmission, Submission
from runners.contract.evaluation import Evaluation
from runners.contract.task import TaskDefinition
from runners.contract.verdict import Verdict


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

    async def add_version(
        self,
        board: BoardId,
        task: TaskDefinition,
        digest: str,
        onto: TaskVersionId | None = None,
    ) -> TaskVersion:
        """Make the task the board's next version; the same digest gives the version there is.

        `onto` is the version that it must follow; UserError `board-moved` when another one came.
        """

    async def configure(
        self, board: BoardId, gpus: tuple[str, ...], deadline: datetime | None
    ) -> Board:
        """Change a board's GPU types and deadline."""

    async def restrict(self, board: BoardId, access: Access) -> Board:
        """Change who may see a board and its sources; its guests stay."""

    async def invite(self, board: BoardId, guests: frozenset[str]) -> Board:
        """Add guests to those that there are."""

    async def uninvite(self, board: BoardId, guests: frozenset[str]) -> Board:
        """Remove guests; who is none is passed over."""

    async def delete(self, board: BoardId, submissions: int | None = None) -> bool:
        """Remove a board with everything that hangs on it; False when there is none.

        UserError `moved` when people have made another number of `submissions` to it.
        """

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
        """Store submission, jobs and display in one transaction, and tell the workers.

        UserError `banned` or `rate-limit`: one person's submissions wait for each other here, so
        that of many at one moment no more are taken than the limits allow.
        """

    async def get(self, submission: SubmissionId) -> Submission | None: ...

    async def to(self, board: BoardId) -> tuple[Submission, ...]:
        """Every submission to a board, oldest first."""

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
class Outcome:
    """How a submission ended on one GPU type; only a passed ranked one has a score."""

    submission: SubmissionId
    gpu: str
    verdict: Verdict
    score: ScoreValue | None


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

    async def outcomes(self, submissions: Sequence[SubmissionId]) -> tuple[Outcome, ...]:
        """How each of many submissions ended, by submission and GPU, without the evaluations."""

    async def scores(self, version: TaskVersionId, gpu: str) -> tuple[Score, ...]:
        """Every score of one task version on one GPU type."""

    async def refusals(self, version: TaskVersionId, gpu: str) -> tuple[Refusal, ...]:
        """Of each person the newest ranked evaluation that did not pass, newest first."""

    async def durations(self, version: TaskVersionId, gpu: str, limit: int) -> tuple[float, ...]:
        """How many seconds each of the newest evaluations took, whatever its mode and verdict."""

    async def pool_durations(self, gpu: str, limit: int) -> tuple[float, ...]:
        """The same of the GPU type, whatever the task; only lately judged jobs are looked at."""


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

    async def rows(self, limit: int = 100, skip: int = 0) -> tuple[AuditRow, ...]:
        """The newest rows first, without as many of them as are skipped."""
