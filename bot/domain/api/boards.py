"""The bodies of `/api/v1/leaderboards`, and of an export."""

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, TypeAdapter

from bot.domain.api.admin import FinalBody, RatioBody
from bot.domain.api.base import ResponseBody, Time
from bot.domain.board import SourceVisibility, Visibility
from bot.domain.confirmation import Confirmation, ConfirmationState, LostPlace
from bot.domain.scoring import PairRatio
from runners.contract.evaluation import Timing
from runners.contract.task import Device, Grader, LanguageName, RankingBy, TaskFormat, Workload


class BestTime(Time):
    """The fastest time on one GPU type."""

    gpu: str
    person: str
    submission: int


class BoardLine(ResponseBody):
    """A board: one task, its GPU types and its season."""

    name: str
    id: int
    gpus: tuple[str, ...]
    deadline: datetime | None
    """None: the board stays open."""
    is_open: bool
    created_at: datetime
    creator_id: int
    task_version_id: int
    """The version that judges new submissions."""
    visibility: Visibility
    source_visibility: SourceVisibility
    """When others may read the submitted sources."""
    pools: dict[str, str] = Field(default_factory=dict)
    """By GPU type, the only pool that times its ranked runs; any pool times the other types."""
    opens_at: datetime | None = None
    """When it opens to people other than its creator; None: it has already opened."""
    late_runs: bool = False
    """Whether it accepts submissions in unranked modes after its deadline."""


class BoardAnswer(BoardLine):
    """A board with its activity."""

    participants: int
    """How many people have submitted, in any mode."""
    best: tuple[BestTime, ...]
    """For the current task version, on each GPU type with a ranked time."""


class BoardsAnswer(ResponseBody):
    """The boards that the caller may see, by name; `next` is the next page's cursor."""

    boards: tuple[BoardAnswer, ...]
    next: str | None = None


class TaskFileBody(ResponseBody):
    """A file of a task."""

    name: str
    size: int
    """In bytes, as UTF-8."""
    not_run: bool = False
    """Whether it is an evaluation program that does not run, because Podium's judge grades."""


class WorkloadBody(ResponseBody):
    """One input shape; `spec` is its line in reports."""

    spec: str
    workload: Workload


class TaskAnswer(ResponseBody):
    """One version of a board's task."""

    board: str
    name: str
    version: int
    version_note: str
    created_at: datetime
    description: str
    language: LanguageName
    format: TaskFormat
    grader: Grader
    device: Device
    ranking_by: RankingBy
    gpus: tuple[str, ...]
    """The GPU types of the board."""
    libraries: tuple[str, ...]
    multi_gpu: bool
    tests: tuple[WorkloadBody, ...]
    benchmarks: tuple[WorkloadBody, ...]
    test_timeout_s: int
    benchmark_timeout_s: int
    ranked_timeout_s: int
    submission_file: str
    files: tuple[TaskFileBody, ...]
    templates: tuple[str, ...]
    """The languages that have a template."""


class StandingBody(Time):
    """A person's best score, its rank, and the number of their attempts.

    A rank is one more than the number of people who are ahead, so several may share one.
    """

    rank: int
    person: str
    person_id: int
    vs_reference: float | None
    """How many times faster than the task's own reference; None while that is unknown."""
    vs_reference_low: float | None = None
    """The lower end of its interval; null unless the judge's clock confirms both times."""
    vs_reference_high: float | None = None
    """The upper end; also null if there is none, because the time may be next to nothing."""
    vs_reference_in_turn: bool = False
    """Whether the reference was timed in turn with it; else the reference's own run counts."""
    attempts: int
    submission: int
    submitted_at: datetime
    pool: str = ""
    """The pool that timed it: `local`, `modal`, `ray`, or a remote worker's name."""

    @property
    def in_turn(self) -> PairRatio | None:
        """The ratio to the reference that was timed in turn with it; None if none was."""
        if not (self.vs_reference_in_turn and self.vs_reference and self.vs_reference_low):
            return None
        ratio = 1 / self.vs_reference
        return PairRatio(ratio, 1 / self.vs_reference_low - ratio)


class Absent(ResponseBody):
    """A person without a score here, with their latest failed ranked run."""

    person: str
    person_id: int
    verdict: str
    stage: str | None
    message: str
    submission: int
    submitted_at: datetime


class ConfirmationBody(ResponseBody):
    """The last comparison of a run that would take one of the first places."""

    state: ConfirmationState
    place: int
    """The place that it would take."""
    comparing: bool
    """Whether the comparison has started."""
    rival: int | None
    """The submission that holds the place; None until the comparison starts."""
    rival_person: str
    ratio: RatioBody | None
    reason: str

    @classmethod
    def of(cls, found: Confirmation | None) -> "ConfirmationBody | None":
        """Return a comparison, if there is one."""
        if found is None:
            return None
        return cls(
            state=found.state,
            place=found.place,
            comparing=found.run is not None,
            rival=found.rival,
            rival_person=found.rival_name,
            ratio=RatioBody.of(found.ratio),
            reason=found.reason,
        )


class LostPlaceBody(ResponseBody):
    """A first place that another run took from this one, or shares, by a comparison of the two."""

    place: int
    shared: bool
    submission: int
    person: str
    ratio: RatioBody | None
    """The time of the other run divided by that of this one."""

    @classmethod
    def of(cls, found: LostPlace | None) -> "LostPlaceBody | None":
        """Return what was lost, if anything was."""
        if found is None:
            return None
        return cls(
            place=found.place,
            shared=found.shared,
            submission=found.submission,
            person=found.person_name,
            ratio=RatioBody.of(found.ratio),
        )


class PendingBody(ResponseBody):
    """A run that is not ranked until it is confirmed."""

    person: str
    person_id: int
    submission: int
    place: int
    """The place that it would take."""
    time: Time | None
    submitted_at: datetime | None

    @classmethod
    def of(cls, found: Confirmation) -> "PendingBody":
        """Return a run whose score is held back."""
        held = found.held
        return cls(
            person=found.person_name,
            person_id=found.person,
            submission=found.submission,
            place=found.place,
            time=None if held is None else Time(**asdict(held)),
            submitted_at=found.submitted_at,
        )


class StandingsAnswer(ResponseBody):
    """One leaderboard: one task version on one GPU type, the best rank first."""

    board: str
    gpu: str
    task_version: int
    version_note: str
    deadline: datetime | None
    speed_of_light_ns: float | None
    """The minimum time that the card's memory bandwidth allows, if known."""
    timing: Timing
    reference: Time | None
    """The time of the task's own reference, if known."""
    reference_failure: str
    """Why the reference has no time; only for the board's creator."""
    entries: tuple[StandingBody, ...]
    absent: tuple[Absent, ...]
    pending: tuple[PendingBody, ...] = ()
    """Runs that would take one of the first places, until they are confirmed."""
    final: FinalBody | None = None
    """The newest final of this GPU type."""


class LeaderboardsAnswer(ResponseBody):
    """A board's leaderboards: one per GPU type, or only the requested one."""

    board: BoardLine
    leaderboards: tuple[StandingsAnswer, ...]


MEDIA_TYPE = "application/x-ndjson"


class ExportHead(ResponseBody):
    """The first line: the board of the export."""

    kind: Literal["board"] = "board"
    board: str
    submissions: int


class ExportCompetition(ResponseBody):
    """The first line of a competition's export.

    After it come the rows of its ranking, the whole export of each board including its `end`, and
    one more `end`.
    """

    kind: Literal["competition"] = "competition"
    competition: str
    boards: tuple[str, ...]


class ExportRows(ResponseBody):
    """Rows of one table, each with its values by column."""

    kind: Literal["rows"] = "rows"
    table: str
    rows: tuple[dict[str, str | int | float | bool | None], ...]


class ExportSource(ResponseBody):
    """A submitted file with the SHA-256 of its bytes; equal files appear once."""

    kind: Literal["source"] = "source"
    sha256: Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]
    text: str


class ExportEnd(ResponseBody):
    """The last line; without it, the export is incomplete."""

    kind: Literal["end"] = "end"


ExportPiece = Annotated[
    ExportCompetition | ExportHead | ExportRows | ExportSource | ExportEnd,
    Field(discriminator="kind"),
]
PIECE: TypeAdapter[ExportPiece] = TypeAdapter(ExportPiece)
"""Parses a line of an export."""
