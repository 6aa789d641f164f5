"""What the store and the use cases return: results, decisions, counts, exports, backups."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from bot.domain.accounts import Person
from bot.domain.board import Board
from bot.domain.confirmation import ConfirmationState
from bot.domain.costs import NamedQuota, Prices, Usage
from bot.domain.ids import AuditId, BoardId, JobId, PersonId, SubmissionId, TaskVersionId
from bot.domain.job import JobState
from bot.domain.scoring import Score, ScoreValue
from bot.domain.submission import Ban, ExclusionKind, RateLimit, Submission
from runners.contract.evaluation import Evaluation
from runners.contract.files import EvaluationFile
from runners.contract.verdict import Stage, Verdict


@dataclass(frozen=True, slots=True)
class JobResult:
    """The verdict of a submission on one GPU type; only a passed ranked one has a score."""

    submission: SubmissionId
    gpu: str
    verdict: Verdict
    score: ScoreValue | None
    confirmation: ConfirmationState | None = None  # how its last comparison ended
    lost_to: SubmissionId | None = None  # which run was confirmed to take its place
    exclusion: ExclusionKind | None = None  # why the submission is no longer ranked
    noisy: bool = False  # whether it passed, but is too noisy to be ranked


@dataclass(frozen=True, slots=True)
class StoredEvaluation:
    """An accepted evaluation with its job."""

    job: JobId
    gpu: str
    evaluation: Evaluation
    at: datetime


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of an accepted evaluation, and the GPU type of its job."""

    gpu: str
    file: EvaluationFile


@dataclass(frozen=True, slots=True)
class FailedRun:
    """Why a person is not on a leaderboard: a ranked run that failed, or that was too noisy."""

    submission: SubmissionId
    person: PersonId
    person_name: str
    gpu: str
    verdict: str
    stage: str | None
    message: str
    submitted_at: datetime
    in_confirmation: bool = False  # it passed, but failed when compared, as `message` says


@dataclass(frozen=True, slots=True)
class ScoreHistory:
    """Scores of a leaderboard over time, oldest first: of all `total`, enough for a plot."""

    scores: tuple[Score, ...]
    total: int


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One submission, the name of its board, its task version's number, and its results."""

    submission: Submission
    board_name: str
    version: int
    results: tuple[JobResult, ...]


@dataclass(frozen=True, slots=True)
class ComparedSubmission:
    """One of two compared submissions, with its verdicts and scores by GPU type."""

    submission: Submission
    verdicts: dict[str, Verdict]
    scores: dict[str, ScoreValue]


@dataclass(frozen=True, slots=True)
class SubmissionComparison:
    """Two submissions to one board; `difference` is a unified diff of their sources."""

    first: ComparedSubmission
    second: ComparedSubmission
    difference: str
    side_by_side: tuple[tuple[str, str, str], ...]
    """Each line of the first source, a mark of `diff --side-by-side`, and the line of the second.

    Empty when the sources are the same or too long to compare. Line endings are ignored, so there
    may be lines without a difference.
    """
    too_long: bool = False
    """Whether a source has more than `MOST_LINES` lines."""


@dataclass(frozen=True, slots=True)
class ExportedSubmission:
    """One submission, its submitter, the number of its task version, and its results."""

    submission: Submission
    person: Person
    version: int
    outcomes: tuple[JobResult, ...]
    ranked_on: frozenset[str]
    """The GPU types on which its score counts: not excluded, and not held back for a comparison."""
    references: Mapping[str, ScoreValue]
    """The known reference times of its task version, by GPU type."""


@dataclass(frozen=True, slots=True)
class BoardExport:
    """A board with all its submissions, oldest first."""

    board: Board
    submissions: tuple[ExportedSubmission, ...]


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One row of the audit log; later rows have greater ids."""

    id: AuditId
    actor: PersonId | None
    action: str
    subject: str
    reason: str
    at: datetime


@dataclass(frozen=True, slots=True)
class NamedAuditEntry:
    """An audit entry with its actor's name; None if Podium itself acted."""

    entry: AuditEntry
    actor_name: str | None


@dataclass(frozen=True, slots=True)
class AuditPage:
    """A page of audit entries, newest first; page 0 has the newest."""

    number: int
    decisions: tuple[NamedAuditEntry, ...]
    more: bool  # whether there are older ones


@dataclass(frozen=True, slots=True)
class NamedLimit:
    """A limit with the name of its board and its only person; None if it covers all of them."""

    limit: RateLimit
    board: str | None
    person: Person | None = None


@dataclass(frozen=True, slots=True)
class SubmissionRules:
    """The limits, quotas, pauses and bans that now prevent submissions."""

    limits: tuple[NamedLimit, ...]
    pause: str | None
    """The notice of the pause of all submissions; None while there is none."""
    boards: dict[str, str]
    """The notice of each paused board, by its name."""
    gpus: dict[str, str]
    """The notice of each paused GPU type."""
    bans: tuple[tuple[Person, Ban], ...]
    quotas: tuple[NamedQuota, ...] = ()


@dataclass(frozen=True, slots=True)
class DayCount:
    """Submissions of one day (UTC), and how many people made them."""

    day: date
    submissions: int
    people: int


@dataclass(frozen=True, slots=True)
class InstallationStats:
    """Counts as they are now; days, verdicts and usage are of the last two weeks."""

    people: int
    boards: int
    days: tuple[DayCount, ...]
    verdicts: Mapping[Verdict, int]
    backlog: Mapping[str, Mapping[str, int]]
    """Jobs that have not ended, by GPU type and state."""
    usage: tuple[Usage, ...] = ()
    """GPU time of the evaluations of the two weeks."""
    prices: Prices = field(default_factory=dict)
    """What a second of each GPU type costs."""


@dataclass(frozen=True, slots=True)
class Schema:
    """The numbers of the newest migration of the database, and of the newest one in the code."""

    present: int
    known: int


@dataclass(frozen=True, slots=True)
class RequestRun:
    """The job of one evaluation server request; `verdict` is None until it was judged."""

    gpu: str
    state: JobState
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    verdict: Verdict | None = None
    stage: Stage | None = None
    used_s: float = 0.0
    durations_s: Mapping[str, float] = field(default_factory=dict)
    """Seconds by step of the evaluation."""


@dataclass(frozen=True, slots=True)
class RequestCount:
    """How many evaluation server requests are in one state, with their mean age in seconds."""

    requests: int
    age_s: float


@dataclass(frozen=True, slots=True)
class KnownPerson:
    """A person as an identity provider knows them; `identity` is such as `discord:17`."""

    identity: str
    name: str
    handle: str = ""  # their unique user name there


@dataclass(frozen=True, slots=True)
class RightsGrant:
    """A source that grants rights to a person."""

    person: PersonId
    source: str


@dataclass(frozen=True, slots=True)
class UnannouncedScore:
    """A stored score that was not announced yet."""

    job: JobId
    submission: SubmissionId
    person: PersonId
    board: BoardId
    task_version: TaskVersionId
    gpu: str


@dataclass(frozen=True, slots=True)
class BackupContents:
    """When a backup was made, by which version of Podium, and the number of rows of each table."""

    made_at: datetime
    podium: str
    rows: Mapping[str, int]


BUCKETS_S = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3600.0)
"""The upper bounds of the buckets of a duration; the last bucket has none.

The database function `bucket_of` has the same numbers.
"""
REFERENCE = "reference"
"""The value of `mode` for the system's own submissions that time a task's reference."""
CONFIRMATION = "confirmation"
"""The value of `mode` for those that confirm a submission."""


@dataclass(frozen=True, slots=True)
class Tally:
    """The evaluations of one GPU type, mode and verdict; times in seconds.

    `judged` counts them by duration of the evaluation, `waited` by time in the queue before the
    first attempt, each by bucket.
    """

    gpu: str
    mode: str
    verdict: str
    evaluations: int
    judged_s: float
    waited_s: float
    judged: tuple[int, ...]
    waited: tuple[int, ...]


TOKEN_TTL = timedelta(minutes=15)
"""How long the token of a Discord interaction can be used to reply."""
REQUEST_TTL = timedelta(days=1)
"""How long a finished request is stored, so that the same one is not executed again."""


@dataclass(frozen=True, slots=True)
class InteractionRequest:
    """A person's request to a front end; `id` begins with the front end, such as `discord:5`."""

    id: str
    door: str
    request: str
    """The front end's own text, from which the whole request can be restored."""
    token: str = field(repr=False)
    """A secret: with it, anyone can reply as the bot."""
    at: datetime


@dataclass(frozen=True, slots=True)
class Question:
    """A question of a command, stored while its token is valid; for the user `asked` only."""

    id: str
    asked: str
    action: str
    request: str
    content: bytes = field(repr=False)
    at: datetime
    chosen: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """A request that a process claimed and did not finish; `tries` counts the attempts begun."""

    id: str
    request: str
    token: str | None = field(repr=False)
    at: datetime
    tries: int
