"""The rows of the in-memory store, and the only code that changes a job and reports it."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import count
from typing import Any

from bot.domain.accounts import Person
from bot.domain.board import Board, TaskVersion
from bot.domain.competition import NewCompetition
from bot.domain.confirmation import Confirmation
from bot.domain.costs import Prices, Quota, QuotaKey, UsageKind
from bot.domain.finals import Final
from bot.domain.ids import (
    AuditId,
    BoardId,
    CompetitionId,
    ConfirmationId,
    EventId,
    FinalId,
    JobId,
    NotificationId,
    PersonId,
    PublicationId,
    SubmissionId,
    TaskVersionId,
    is_system_submission,
)
from bot.domain.job import Job, JobEvent, JobState, Notice, Topic
from bot.domain.names import is_ambiguous, skeleton, with_handle
from bot.domain.notifications import Notification
from bot.domain.records import AuditEntry, StoredEvaluation
from bot.domain.scoring import ScoreValue
from bot.domain.submission import Ban, Exclusion, IdempotencyKey, RateLimit, Submission, ThreadKey
from bot.ports import Clock
from bot.store.postgres.database import storable
from bot.store.postgres.events import Subscriptions
from runners.contract.evaluation import Evaluation, Progress
from runners.contract.files import EvaluationFile
from runners.contract.task import Mode


@dataclass(frozen=True, slots=True)
class Pool:
    """How many jobs of one GPU type may run at once."""

    max_running: int | None = None
    paused: bool = False
    notice: str = ""


@dataclass(frozen=True, slots=True)
class Shown:
    """Where a front end shows a submission, and which of its processes does so."""

    door: str
    place: str
    owner: str | None = None
    lease_until: datetime | None = None
    finished: bool = False
    claims: int = 0


@dataclass(frozen=True, slots=True)
class ThreadRow:
    """A front end's thread for a board, and which of its processes creates it."""

    used_at: datetime
    thread: str | None = None
    claims: int = 0
    owner: str | None = None
    lease_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Posted:
    """A notification that waits for its delivery or was delivered."""

    notification: Notification
    due: datetime
    tries: int = 0
    owner: str | None = None
    lease_until: datetime | None = None
    done_at: datetime | None = None
    refusal: str | None = None


@dataclass(frozen=True, slots=True)
class Keyed:
    """The submission of a person's idempotency key."""

    key: IdempotencyKey
    submission: SubmissionId
    at: datetime


@dataclass(frozen=True, slots=True)
class TimedReference:
    """The reference of one task version on one GPU type."""

    submission: SubmissionId | None = None
    value: ScoreValue | None = None
    machine: str = ""
    at: datetime | None = None
    noted: bool = False


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run of a check; `request` is an EvaluationRequest as JSON."""

    publication: PublicationId
    key: str
    request: str
    progress: Progress | None = None
    evaluation: Evaluation | None = None


@dataclass(frozen=True, slots=True)
class CompetitionRow:
    """A competition, and which of its dates were announced."""

    id: CompetitionId
    new: NewCompetition
    opening_announced: datetime | None = None
    closing_announced: datetime | None = None


@dataclass(frozen=True, slots=True)
class UsedTime:
    """The time that one attempt used; it stays when its job and its board are deleted."""

    person: PersonId
    board: BoardId | None
    board_name: str
    gpu: str
    kind: UsageKind
    seconds: float
    at: datetime


@dataclass(slots=True)
class Tables:
    """The rows that Postgres has in its tables."""

    clock: Clock
    subscriptions: Subscriptions
    people: dict[PersonId, Person] = field(default_factory=dict)
    notices_offered: dict[PersonId, SubmissionId] = field(default_factory=dict)
    refused_skeletons: dict[PersonId, str] = field(default_factory=dict)
    boards: dict[BoardId, Board] = field(default_factory=dict)
    competitions: dict[CompetitionId, CompetitionRow] = field(default_factory=dict)
    versions: dict[TaskVersionId, TaskVersion] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    submissions: dict[SubmissionId, Submission] = field(default_factory=dict)
    pools: dict[str, Pool] = field(default_factory=dict)
    present_turns: dict[tuple[str, int], int] = field(default_factory=dict)
    jobs: dict[JobId, Job] = field(default_factory=dict)
    leases: dict[JobId, datetime] = field(default_factory=dict)
    claimed_at: dict[JobId, datetime] = field(default_factory=dict)
    check_runs: dict[JobId, StoredRun] = field(default_factory=dict)
    events: list[JobEvent] = field(default_factory=list)
    evaluations: dict[JobId, StoredEvaluation] = field(default_factory=dict)
    files: dict[JobId, tuple[EvaluationFile, ...]] = field(default_factory=dict)
    scores: dict[JobId, ScoreValue] = field(default_factory=dict)
    references: dict[tuple[TaskVersionId, str], TimedReference] = field(default_factory=dict)
    usual_references: dict[TaskVersionId, tuple[float, ...]] = field(default_factory=dict)
    exclusions: dict[SubmissionId, Exclusion] = field(default_factory=dict)
    bans: dict[PersonId, Ban] = field(default_factory=dict)
    board_pauses: dict[BoardId, str] = field(default_factory=dict)
    judged_again: set[SubmissionId] = field(default_factory=set)
    keys: dict[tuple[PersonId, str], Keyed] = field(default_factory=dict)
    limits: dict[tuple[BoardId | None, Mode | None, PersonId | None], RateLimit] = field(
        default_factory=dict
    )
    quotas: dict[QuotaKey, Quota] = field(default_factory=dict)
    gpu_time: list[UsedTime] = field(default_factory=list)
    prices: Prices = field(default_factory=dict)
    displays: dict[SubmissionId, Shown] = field(default_factory=dict)
    threads: dict[ThreadKey, ThreadRow] = field(default_factory=dict)
    conversations: dict[PersonId, str] = field(default_factory=dict)
    confirmations: dict[ConfirmationId, Confirmation] = field(default_factory=dict)
    held_scores: dict[ConfirmationId, JobId] = field(default_factory=dict)
    confirmation_runs: dict[SubmissionId, ConfirmationId] = field(default_factory=dict)
    finals: dict[FinalId, Final] = field(default_factory=dict)
    unannounced: list[JobId] = field(default_factory=list)
    outbox: dict[NotificationId, Posted] = field(default_factory=dict)
    tallied: list[tuple[Job, StoredEvaluation]] = field(default_factory=list)
    lost_leases: Counter[str] = field(default_factory=Counter)
    audit: list[AuditEntry] = field(default_factory=list)
    audit_requests: dict[AuditId, str | None] = field(default_factory=dict)
    _ids: Iterator[int] = field(default_factory=lambda: count(1))
    _moves: Iterator[int] = field(default_factory=lambda: count(1))

    def next_id(self) -> int:
        """A new row number."""
        return next(self._ids)

    def next_move(self) -> int:
        """A number greater than all earlier ones."""
        return next(self._moves)

    def shown_name(self, person: PersonId, version: TaskVersionId, gpu: str) -> str:
        """A person's name on a leaderboard, with the handle where another's name looks alike."""
        own = self.people[person]
        alike = is_ambiguous(own.name) or any(
            skeleton(self.people[other].name) == skeleton(own.name)
            for other in self._people_on(version, gpu) - {person}
        )
        deleted = own.identity.startswith("deleted:")
        return (
            with_handle(own.name, own.identity, own.handle) if alike and not deleted else own.name
        )

    def _people_on(self, version: TaskVersionId, gpu: str) -> set[PersonId]:
        """Everyone with a ranked evaluation there."""
        found = {self.jobs[job].submission for job in self.evaluations if self.jobs[job].gpu == gpu}
        made = [self.submissions[each] for each in found if each in self.submissions]
        return {
            each.person
            for each in made
            if each.task_version == version and each.mode is Mode.RANKED and each.id > 0
        }

    def ban_of(self, person: PersonId) -> Ban | None:
        """The person's ban, unless it has ended."""
        ban = self.bans.get(person)
        lasts = ban is not None and (ban.until is None or ban.until > self.clock.now())
        return ban if lasts else None

    def decided(self, actor: PersonId | None, action: str, subject: str, reason: str) -> None:
        """Add a row to the audit log."""
        texts = storable(action), storable(subject), storable(reason)
        number = AuditId(len(self.audit) + 1)
        self.audit.append(AuditEntry(number, actor, *texts, self.clock.now()))

    def forget_board(self, board: BoardId) -> None:
        """Remove a board and everything that belongs to it."""
        doomed = {each.id for each in self.submissions.values() if each.board == board}
        for key in [each for each in self.threads if each.board == board]:
            del self.threads[key]
        self.forget_submissions(doomed)
        versions = [each.id for each in self.versions.values() if each.board == board]
        _drop(self.references, [key for key in self.references if key[0] in versions])
        _drop(self.versions, versions)
        _drop(
            self.outbox,
            [key for key, row in self.outbox.items() if row.notification.board == board],
        )
        self.board_pauses.pop(board, None)
        _drop(self.limits, [key for key in self.limits if key[0] == board])
        _drop(self.quotas, [key for key in self.quotas if key.board == board])
        _drop(self.finals, [key for key, row in self.finals.items() if row.board == board])
        self._leave_competitions(board)
        del self.boards[board]

    def _leave_competitions(self, board: BoardId) -> None:
        """Take a board out of its competitions, each of which ends with its last board."""
        for number, row in list(self.competitions.items()):
            boards = tuple(each for each in row.new.boards if each != board)
            self.competitions[number] = replace(row, new=replace(row.new, boards=boards))
            if not boards:
                del self.competitions[number]

    def forget_submissions(self, doomed: Collection[SubmissionId]) -> None:
        """Remove submissions and everything that belongs to them."""
        jobs = [job.id for job in self.jobs.values() if job.submission in doomed]
        self._keep_used(jobs, by_fault=True)
        for of_job in (self.jobs, self.leases, self.evaluations, self.files, self.scores):
            _drop(of_job, jobs)
        for of_submission in (self.submissions, self.displays, self.exclusions):
            _drop(of_submission, doomed)
        compared = [key for key, row in self.confirmations.items() if row.submission in doomed]
        _drop(self.confirmations, compared)
        _drop(self.keys, [key for key, row in self.keys.items() if row.submission in doomed])
        self.events = [event for event in self.events if event.submission not in doomed]
        self.unannounced = [job for job in self.unannounced if job in self.scores]

    def forget_check_runs(self, publication: PublicationId) -> None:
        """Remove the runs of a publication's check, and their jobs."""
        doomed = [job for job, run in self.check_runs.items() if run.publication == publication]
        self._keep_used(doomed, by_fault=False)
        for of_job in (self.jobs, self.leases, self.check_runs):
            _drop(of_job, doomed)

    def _keep_used(self, doomed: Iterable[JobId], *, by_fault: bool) -> None:
        """Add the time of running jobs that are deleted."""
        for job in (self.jobs[number] for number in doomed if number in self.jobs):
            if job.state is JobState.RUNNING:
                self.add_gpu_time(job, self.time_since_claim(job), by_fault=by_fault)

    def time_since_claim(self, job: Job) -> float:
        """The most GPU seconds that the current attempt can have used."""
        since = (self.clock.now() - self.claimed_at[job.id]).total_seconds()
        return job.cards * max(0.0, min(job.limit_s, since))

    def add_gpu_time(self, job: Job, seconds: float, *, by_fault: bool) -> None:
        """Add the time that an attempt used."""
        made = self.submissions.get(job.submission)
        board = None if made is None else self.boards[made.board]
        number, name = (None, "") if board is None else (board.id, board.name)
        kind, now = self.kind_of(job, by_fault=by_fault), self.clock.now()
        self.gpu_time.append(UsedTime(job.person, number, name, job.gpu, kind, seconds, now))

    def kind_of(self, job: Job, *, by_fault: bool = False) -> UsageKind:
        """Why a job uses GPU time."""
        if job.submission in self.confirmation_runs:
            return UsageKind.CONFIRMATION
        if job.check_run is None and is_system_submission(job.submission):
            return UsageKind.REFERENCE
        if by_fault:
            return UsageKind.FAULT
        if job.submission in self.judged_again:
            return UsageKind.REJUDGE
        return UsageKind.SUBMISSION if job.check_run is None else UsageKind.CHECK

    def limited_by(
        self, person: PersonId, board: BoardId, mode: Mode, now: datetime
    ) -> tuple[RateLimit, datetime] | None:
        """The limit that the person has reached and that ends last; when its window began."""
        reached = [
            (limit, counted)
            for limit in self.limits.values()
            if limit.board in {None, board} and limit.mode in {None, mode}
            if limit.person in {None, person} and limit.lasts(now)
            if (counted := self._counted(limit, person, now)) is not None
        ]
        return max(reached, key=lambda each: each[1] + each[0].window, default=None)

    def _counted(self, limit: RateLimit, person: PersonId, now: datetime) -> datetime | None:
        """When the oldest submission was made that must leave the window before another fits."""
        made = sorted(
            one.created_at
            for one in self.submissions.values()
            if one.person == person
            and one.id not in self.judged_again
            and limit.board in {None, one.board}
            and limit.mode in {None, one.mode}
            and one.created_at > now - limit.window
        )
        return made[-limit.most] if len(made) >= limit.most else None

    def jobs_of(self, submission: SubmissionId) -> tuple[Job, ...]:
        """A submission's jobs, by GPU."""
        found = [job for job in self.jobs.values() if job.submission == submission]
        return tuple(sorted(found, key=lambda job: job.gpu))

    def next_turn(self, person: PersonId, gpu: str, priority: int) -> int:
        """The turn of a new job of this person."""
        waiting = [
            job.turn
            for job in self.jobs.values()
            if (job.person, job.gpu, job.priority) == (person, gpu, priority)
            and job.state is JobState.QUEUED
        ]
        return turn_for_new_job(self.present_turns.get((gpu, priority), 0), max(waiting, default=0))

    def pass_turn(self, job: Job) -> None:
        """Record that the turn of a job was claimed."""
        pool = job.gpu, job.priority
        self.present_turns[pool] = max(job.turn, self.present_turns.get(pool, 0))

    def held(self, job: JobId, fence: int) -> Job | None:
        """The running job, if `fence` still belongs to its lease."""
        found = self.jobs.get(job)
        if found is None or found.state is not JobState.RUNNING or found.fence != fence:
            return None
        return found

    def put(self, job: Job) -> None:
        """Store a job; record and announce a change of its state."""
        old = self.jobs.get(job.id)
        self.jobs[job.id] = job
        if job.state is not JobState.RUNNING:
            self.leases.pop(job.id, None)
        if old is None or old.state is not job.state:
            self._tell_state(job, freed=old is not None and old.state is JobState.RUNNING)
        if job.cancel_requested and not (old is not None and old.cancel_requested):
            self.subscriptions.publish(Notice(Topic.CANCEL, str(job.id)))

    def _tell_state(self, job: Job, *, freed: bool) -> None:
        body: dict[str, str | int] = {"gpu": job.gpu, "attempt": job.attempt}
        if job.error is not None:
            body["error"] = job.error
        if job.check_run is None:
            self.add_event(job, job.state.value, body)
        if freed or job.state is JobState.QUEUED:
            self.announce(job.gpu)

    def announce(self, gpu: str) -> None:
        """Notify the workers that a GPU type may have jobs and free slots."""
        self.subscriptions.publish(Notice(Topic.READY, gpu))

    def add_event(self, job: Job, kind: str, body: dict[str, str | int]) -> None:
        """Record one event of a job and notify those who watch its submission."""
        event_id = EventId(self.next_id())
        self.events.append(JobEvent(event_id, job.id, job.submission, kind, body, self.clock.now()))
        self.subscriptions.publish(Notice(Topic.PROGRESS, str(job.submission)))


def _drop(rows: dict[Any, Any], keys: Iterable[object]) -> None:
    for key in keys:
        rows.pop(key, None)


def turn_for_new_job(present: int, waiting: int) -> int:
    """The turn of a new job; turns are counted per GPU type and priority.

    `present` is the highest turn that was claimed so far, `waiting` the highest turn of this
    person's own queued jobs; 0 if there is none. The database has the same rule as `next_turn`.
    """
    return 1 + max(present, waiting)
