"""What is kept for good: people, boards, submissions, results, references, requests."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from bot.domain.accounts import Person
from bot.domain.board import Access, Board, NewBoard, TaskVersion
from bot.domain.ids import AuditId, BoardId, PersonId, SubmissionId, TaskVersionId
from bot.domain.job import JobState
from bot.domain.pins import Pins
from bot.domain.records import (
    AuditEntry,
    FailedRun,
    JobResult,
    RequestCount,
    RequestRun,
    ScoreHistory,
    StoredEvaluation,
    StoredFile,
)
from bot.domain.reference_times import Reference, Untimed
from bot.domain.scoring import Entrant, Score
from bot.domain.submission import IdempotencyKey, NewSubmission, Submission
from runners.contract.task import TaskDefinition


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

    async def pin(self, board: BoardId, pins: Pins) -> Board:
        """Change which pools alone time its ranked jobs; jobs that have not ended follow.

        Where the pool changes, the reference of the present task version is timed again.
        """

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
        """Every board, by name; none of the house's own."""

    async def version(self, version: TaskVersionId) -> TaskVersion | None: ...

    async def versions(self, board: BoardId) -> tuple[TaskVersion, ...]:
        """A board's versions, oldest first."""


class Submissions(Protocol):
    """Submissions and their sources."""

    async def add(self, submission: NewSubmission) -> Submission:
        """Store submission, jobs and display in one transaction, and tell the workers.

        UserError `banned` or `rate-limit`: one person's submissions wait for each other here, so
        that of many at one moment no more are taken than the limits allow.

        With `once` nothing is stored where `first` has a submission: that one is given.
        """

    async def first(self, person: PersonId, once: IdempotencyKey) -> Submission | None:
        """What the person submitted with this key less than `bot.domain.submission.KEPT` ago.

        UserError `key-reused` when its digest is another one.
        """

    async def forget_keys(self) -> int:
        """Forget the keys that are older; gives how many."""

    async def get(self, submission: SubmissionId) -> Submission | None: ...

    async def several(self, submissions: Sequence[SubmissionId]) -> tuple[Submission, ...]:
        """Those of them that there are, oldest first."""

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
        """A person's submissions to boards that lists have, newest first, below `before`."""


class Results(Protocol):
    """Accepted evaluations and scores."""

    async def evaluations(self, submission: SubmissionId) -> tuple[StoredEvaluation, ...]:
        """The accepted evaluations, by GPU, without their files."""

    async def files(self, submission: SubmissionId) -> tuple[StoredFile, ...]:
        """The files of the accepted evaluations, by GPU and name: megabytes of them."""

    async def outcomes(self, submissions: Sequence[SubmissionId]) -> tuple[JobResult, ...]:
        """How each of many submissions ended, by submission and GPU, without the evaluations."""

    async def scores(self, version: TaskVersionId, gpu: str) -> tuple[Score, ...]:
        """Every score of one task version on one GPU type: on a big board that takes a while."""

    async def scores_of(
        self, person: PersonId, version: TaskVersionId, gpu: str
    ) -> tuple[Score, ...]:
        """Those of one person, oldest first."""

    async def course(self, version: TaskVersionId, gpu: str, most: int) -> ScoreHistory:
        """Every record, and about so many of all the scores, whichever; all where there are fewer.

        What a record is `bot.domain.scoring.records` says. Reading it takes as long on a big board.
        """

    async def fastest(self, leaderboards: Sequence[tuple[TaskVersionId, str]]) -> tuple[Score, ...]:
        """The best score of each of many leaderboards that has one, in no order."""

    async def entrants(self, version: TaskVersionId, gpu: str) -> tuple[Entrant, ...]:
        """Of each person with such scores the best one and their number, the fastest first.

        The same as `bot.domain.scoring.entrants` of all the scores, without reading them.
        """

    async def moves(self, version: TaskVersionId, gpu: str) -> int:
        """Grows with whatever changes `entrants`, `refusals`, or the reference's time."""

    async def refusals(self, version: TaskVersionId, gpu: str) -> tuple[FailedRun, ...]:
        """Of each person the newest ranked evaluation that did not pass, newest first."""

    async def durations(self, version: TaskVersionId, gpu: str, limit: int) -> tuple[float, ...]:
        """How many seconds each of the newest evaluations took, whatever its mode and verdict."""

    async def pool_durations(self, gpu: str, limit: int) -> tuple[float, ...]:
        """The same of the GPU type, whatever the task; only lately judged jobs are looked at."""


class Audit(Protocol):
    """The record of decisions; rows are never changed."""

    async def record(
        self, actor: PersonId | None, action: str, subject: str, reason: str
    ) -> None: ...

    async def rows(
        self, limit: int = 100, skip: int = 0, before: AuditId | None = None
    ) -> tuple[AuditEntry, ...]:
        """The newest rows first, of those with numbers below `before`, without the skipped ones."""


class References(Protocol):
    """One row per task version and GPU type, whose submission is the house's own.

    Such a submission has a number below zero (`is_system_submission`), no score, and no place in
    any history, export, statistic or list of refusals; its job counts in the `backlog`, for it
    takes a slot. `Jobs.accept` stores its time here, in the statement that ends its job.
    """

    async def lacking(self) -> tuple[Untimed, ...]:
        """The boards' present task versions and GPU types that have no row."""

    async def order(self, submission: NewSubmission) -> bool:
        """Store the row with the submission and its job; False when there is a row already.

        The submission is for one GPU type.
        """

    async def go_without(self, version: TaskVersionId, gpu: str) -> bool:
        """Store that the task has no reference to be timed; False when there is a row already."""

    async def forget_given_up(self, age: timedelta) -> int:
        """Remove the rows whose job ended so long ago without a verdict, so that they are lacking.

        Gives how many. That was our fault; a verdict is the reference's own, and stays.
        """

    async def of(self, version: TaskVersionId, gpu: str) -> Reference | None:
        """What is known; None when there is no row."""

    async def note_failures(self) -> tuple[tuple[str, str], ...]:
        """Put into the audit, once each, what could not be timed; gives subjects and reasons."""


class EvaluationServerRequests(Protocol):
    """Submissions to one board of the house's own, each judged by a task made for it."""

    async def add(self, submission: NewSubmission, task: TaskDefinition, digest: str) -> Submission:
        """Store the submission with its job and the version that judges it, in one transaction.

        The board has each digest once, and its own version stays what it is; the version that the
        submission names is of no account. UserError as of `Submissions.add`.
        """

    async def tallies(self, board: BoardId) -> Mapping[JobState, RequestCount]:
        """How many requests are in each state; states without any are absent."""

    async def newest(self, board: BoardId, limit: int) -> tuple[RequestRun, ...]:
        """The newest requests, newest first."""

    async def overdue(self, board: BoardId, age: timedelta) -> tuple[SubmissionId, ...]:
        """What was asked so long ago and has not ended, oldest first."""

    async def forget(self, board: BoardId, age: timedelta, person: PersonId | None = None) -> int:
        """Remove what ended so long ago, of one person or of everybody; gives how many.

        With it goes what nothing refers to any more: their versions and sources.
        """
