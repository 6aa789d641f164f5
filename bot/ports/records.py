"""Permanent data: tokens, rights, boards, submissions, results, references."""

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from datetime import datetime, timedelta
from typing import Protocol

from bot.domain import records
from bot.domain.accounts import Token, TokenHolder, TokenScope
from bot.domain.board import Access, Board, NewBoard, Pins, SeasonRules, TaskVersion, Viewer
from bot.domain.competition import Competition, NewCompetition
from bot.domain.ids import (
    AuditId,
    BoardId,
    CompetitionId,
    PersonId,
    SubmissionId,
    TaskVersionId,
    TokenId,
)
from bot.domain.job import JobState
from bot.domain.reference_times import Reference, Untimed
from bot.domain.scoring import Entrant, Score
from bot.domain.submission import IdempotencyKey, NewSubmission, Submission
from runners.contract.task import Grader, TaskDefinition


class Boards(Protocol):
    """Boards and the versions of their tasks."""

    async def publish(self, board: NewBoard, task: TaskDefinition, digest: str) -> Board:
        """Store a board with version 1 of its task; UserError `board-exists` for a taken name."""

    async def add_version(
        self, board: BoardId, task: TaskDefinition, digest: str, onto: TaskVersionId | None = None
    ) -> TaskVersion:
        """Add the task as the board's next version; the same digest returns the existing one.

        `onto` is the version that it must follow; UserError `board-moved` if there is a newer one.
        """

    async def configure(
        self, board: BoardId, gpus: tuple[str, ...], deadline: datetime | None
    ) -> Board:
        """Change a board's GPU types and deadline."""

    async def pin(self, board: BoardId, pins: Pins) -> Board:
        """Change which pools time its ranked jobs; also applies to unfinished jobs.

        If the pool changes, the reference of the current task version is timed again.
        """

    async def set_rules(self, board: BoardId, rules: SeasonRules) -> Board:
        """Change when a board opens and what it accepts after its deadline."""

    async def choose_grader(self, board: BoardId, grader: Grader | None) -> Board:
        """Store the grader that its creator chose, for later task versions."""

    async def restrict(self, board: BoardId, access: Access) -> Board:
        """Change who may see a board and its sources; its guests stay."""

    async def invite(self, board: BoardId, guests: frozenset[str]) -> Board:
        """Add guests to the existing ones."""

    async def uninvite(self, board: BoardId, guests: frozenset[str]) -> Board:
        """Remove guests; others are ignored."""

    async def delete(self, board: BoardId, submissions: int | None = None) -> bool:
        """Delete a board and all its data; False when there is none.

        UserError `moved` when the board does not have this number of `submissions`.
        """

    async def find(self, name: str) -> Board | None: ...

    async def get(self, board: BoardId) -> Board | None: ...

    async def all(self) -> tuple[Board, ...]:
        """Return every board, by name, except the system's own."""

    async def version(self, version: TaskVersionId) -> TaskVersion | None: ...

    async def versions(self, board: BoardId) -> tuple[TaskVersion, ...]:
        """Return a board's versions, oldest first."""


class Competitions(Protocol):
    """Sets of boards; a competition is deleted together with its last board."""

    async def put(self, new: NewCompetition, onto: CompetitionId | None = None) -> Competition:
        """Store a competition, or change all of `onto` except its name and creator.

        UserError `competition-exists` for a taken name, `unknown-competition` if `onto` is gone.
        """

    async def delete(self, competition: CompetitionId) -> bool:
        """Delete a competition and its unsent notifications, not its boards; False if gone."""

    async def find(self, name: str) -> Competition | None: ...

    async def lock(self, competition: CompetitionId) -> bool:
        """Keep others from changing it until the transaction ends; False if gone."""

    async def count_of(self, creator: PersonId) -> int:
        """Return how many competitions a person has created."""

    async def known_to(
        self, viewer: Viewer, *, after: str | None = "", limit: int | None = None
    ) -> tuple[Competition, ...]:
        """Return at most `limit` that the viewer may know of, by name, after the name `after`.

        If `after` is None, they are sorted by opening date instead, the latest first.
        """

    async def unannounced(self) -> tuple[Competition, ...]:
        """Return those that have opened and have an unannounced date in the past, by name."""

    async def announce_opening(self, competition: CompetitionId, opened_at: datetime) -> bool:
        """Record that this opening date is announced; False when it already was."""

    async def announce_closing(self, competition: CompetitionId, closed_at: datetime) -> bool:
        """Record that this closing date is announced; False when it already was."""


class Submissions(Protocol):
    """Submissions and their sources."""

    async def add(self, submission: NewSubmission) -> Submission:
        """Store submission, jobs and display in one transaction, and notify the workers.

        UserError `banned` or `rate-limit`: a person's submissions are serialized here, so that
        concurrent ones cannot exceed the limits.
        If `first` finds a submission with its key, nothing is stored, and that one is returned.
        """

    async def first(self, person: PersonId, key: IdempotencyKey) -> Submission | None:
        """Return what the person submitted with this key in the last `KEY_TTL`.

        UserError `key-reused` when its digest differs.
        """

    async def delete_expired_keys(self) -> int:
        """Delete keys older than `KEY_TTL`; return how many."""

    async def get(self, submission: SubmissionId) -> Submission | None: ...

    async def several(self, submissions: Sequence[SubmissionId]) -> tuple[Submission, ...]:
        """Return those that exist, oldest first."""

    async def newest(self, limit: int) -> tuple[Submission, ...]:
        """Return everyone's newest submissions, newest first."""

    async def write_note(self, submission: SubmissionId, note: str) -> None:
        """Store the author's note about a submission; do nothing if it does not exist."""

    async def to(self, board: BoardId) -> tuple[Submission, ...]:
        """Return every submission to a board, oldest first."""

    async def source(self, submission: SubmissionId) -> str: ...

    async def history(
        self,
        person: PersonId,
        board: BoardId | None = None,
        before: SubmissionId | None = None,
        limit: int = 50,
    ) -> tuple[Submission, ...]:
        """Return a person's submissions to listed boards with ids below `before`, newest first."""


class Results(Protocol):
    """Accepted evaluations and scores."""

    async def evaluations(self, submission: SubmissionId) -> tuple[records.StoredEvaluation, ...]:
        """Return the accepted evaluations, by GPU type, without their files."""

    async def files(self, submission: SubmissionId) -> tuple[records.StoredFile, ...]:
        """Return the files of the accepted evaluations, by GPU type and name; may be megabytes."""

    async def outcomes(self, submissions: Sequence[SubmissionId]) -> tuple[records.JobResult, ...]:
        """Return many submissions' results, by submission and GPU type, without evaluations."""

    async def scores(self, version: TaskVersionId, gpu: str) -> tuple[Score, ...]:
        """Return every score of one task version on one GPU type; slow on a large board."""

    async def scores_of(
        self, person: PersonId, version: TaskVersionId, gpu: str
    ) -> tuple[Score, ...]:
        """Return one person's scores, oldest first."""

    async def score_history(
        self, version: TaskVersionId, gpu: str, most: int
    ) -> records.ScoreHistory:
        """Return each record, each person's best, and about `most` others; all if fewer.

        `bot.domain.scoring.records` defines a record. Slow on a large board.
        """

    async def fastest(self, leaderboards: Sequence[tuple[TaskVersionId, str]]) -> tuple[Score, ...]:
        """Return the best score of each of these leaderboards that has one, in no order."""

    async def entrants(self, version: TaskVersionId, gpu: str) -> tuple[Entrant, ...]:
        """Return each person's best score and number of scores, the fastest first.

        The same as `bot.domain.scoring.entrants` of all scores, without loading them.
        """

    async def revision(self, version: TaskVersionId, gpu: str) -> int:
        """Return a counter of changes: entrants, refusals, held-back runs, the reference's time."""

    async def refusals(self, version: TaskVersionId, gpu: str) -> tuple[records.FailedRun, ...]:
        """Return each person's newest ranked run that failed or was too noisy, newest first."""

    async def durations(self, version: TaskVersionId, gpu: str, limit: int) -> tuple[float, ...]:
        """Return the durations in seconds of the newest evaluations, of any mode and verdict."""

    async def gpu_durations(self, gpu: str, limit: int) -> tuple[float, ...]:
        """Return the same for all tasks on this GPU type; only recent jobs are read."""


AUDIT_REQUEST: ContextVar[str | None] = ContextVar("audit_request", default=None)
"""The request that is being handled, if it may be handled again: each decision is recorded once."""


class Audit(Protocol):
    """The audit log; its rows are never changed."""

    async def record(self, actor: PersonId | None, action: str, subject: str, reason: str) -> None:
        """Add a row; not if `AUDIT_REQUEST` has added it and nothing else was decided since."""

    async def rows(
        self, limit: int = 100, skip: int = 0, before: AuditId | None = None
    ) -> tuple[records.AuditEntry, ...]:
        """Return rows with ids below `before`, newest first, without the first `skip`."""


class References(Protocol):
    """One row per task version and GPU type, with a submission of the system itself.

    Such a submission has a negative number (`is_system_submission`), no score, and is in no
    history, export, statistic or list of refusals; its job counts in the `backlog`, because it
    takes a slot. `Jobs.accept` stores its time here, in the statement that ends its job.
    """

    async def usual(
        self, version: TaskVersionId, measured_ns: Sequence[float]
    ) -> tuple[float, ...]:
        """Return the usual time of a task's reference on the CPU in each benchmark, in ns.

        The first call for a task version sets it to `measured_ns`.
        """

    async def untimed(self) -> tuple[Untimed, ...]:
        """Return the boards' current task versions and GPU types without a row."""

    async def order(self, submission: NewSubmission) -> bool:
        """Store the row with the submission and its job; False when there already is a row.

        The submission is for one GPU type.
        """

    async def mark_untimeable(self, version: TaskVersionId, gpu: str) -> bool:
        """Store that the task has no reference to time; False when there already is a row."""

    async def delete_given_up(self, age: timedelta) -> int:
        """Delete rows whose job ended this long ago with an internal error; return how many.

        Those references are then timed again. A row whose job has a verdict stays, because the
        reference itself caused that.
        """

    async def of(self, version: TaskVersionId, gpu: str) -> Reference | None:
        """Return the row's data; None when there is no row."""

    async def record_failures(self) -> tuple[tuple[str, str], ...]:
        """Record failed references in the audit log, each once; return the new ones and why."""


class EvaluationServerRequests(Protocol):
    """Submissions to one board of the system itself, each judged by a task made for it."""

    async def add(self, submission: NewSubmission, task: TaskDefinition, digest: str) -> Submission:
        """Store the submission, its job and the version that judges it, in one transaction.

        The board stores each digest once and keeps its current version; the version in the
        submission is ignored. UserError as for `Submissions.add`.
        """

    async def tallies(self, board: BoardId) -> Mapping[JobState, records.RequestCount]:
        """Return how many requests are in each state; states without any are absent."""

    async def newest(self, board: BoardId, limit: int) -> tuple[records.RequestRun, ...]:
        """Return the newest requests, newest first."""

    async def overdue(self, board: BoardId, age: timedelta) -> tuple[SubmissionId, ...]:
        """Return unfinished requests of this age, oldest first."""

    async def delete_ended(
        self, board: BoardId, age: timedelta, person: PersonId | None = None
    ) -> int:
        """Delete requests that ended this long ago, of one person or of all; return how many.

        Also deletes versions and sources that are no longer referenced.
        """


class Tokens(Protocol):
    """Tokens by digest."""

    async def add(
        self,
        person: PersonId,
        digest: str,
        label: str,
        scope: TokenScope = TokenScope.PERSON,
        *,
        expires_at: datetime | None = None,
        begun_by: TokenId | None = None,
    ) -> Token:
        """Store a new token, which is revoked with `begun_by`; StoreError if the worker has one."""

    async def find(self, digest: str) -> Token | None:
        """Return the token with this digest unless it is revoked; it may have expired."""

    async def find_holder(self, digest: str) -> TokenHolder | None:
        """Return the same with its person and the rights that they have now."""

    async def of(self, person: PersonId) -> tuple[Token, ...]:
        """Return a person's tokens that are neither revoked nor expired, oldest first."""

    async def sessions_of(self, person: PersonId) -> tuple[Token, ...]:
        """Return the browser sessions in which a person is signed in, newest first."""

    async def of_workers(self) -> tuple[Token, ...]:
        """Return the tokens of workers that are not revoked, by label."""

    async def revoke(self, person: PersonId, token: TokenId) -> bool:
        """Revoke a token that acts for this person; False when there is none."""

    async def revoke_worker(self, label: str) -> bool:
        """Revoke the token of the worker with this label; False when there is none."""
