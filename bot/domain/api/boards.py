"""The bodies of `/api/v1/leaderboards`, and of an export."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, TypeAdapter

from bot.domain.api.base import ResponseBody, Time
from bot.domain.board import SourceVisibility, Visibility
from runners.contract.evaluation import Timing
from runners.contract.task import Device, Grader, LanguageName, RankingBy, TaskFormat, Workload


class BestTime(Time):
    """The fastest on one GPU type."""

    gpu: str
    person: str
    submission: int


class BoardLine(ResponseBody):
    """A board: one task, its GPU types and its season."""

    name: str
    id: int
    gpus: tuple[str, ...]
    deadline: datetime | None
    """None: it stays open."""
    is_open: bool
    created_at: datetime
    creator_id: int
    task_version_id: int
    """Of the version by which new submissions are judged."""
    visibility: Visibility
    source_visibility: SourceVisibility
    """When others may read what was submitted."""
    pools: dict[str, str] = Field(default_factory=dict)
    """By GPU type the pool that alone times its ranked runs; of a type that is not named, any."""


class BoardAnswer(BoardLine):
    """A board with what goes on there."""

    participants: int
    """How many people have submitted, in any mode."""
    best: tuple[BestTime, ...]
    """Of the present task version, on each GPU type with a ranked time."""


class BoardsAnswer(ResponseBody):
    """Boards that exist for the caller, by name; `next` is the cursor of the page after this."""

    boards: tuple[BoardAnswer, ...]
    next: str | None = None


class TaskFileBody(ResponseBody):
    """A file of a task."""

    name: str
    size: int
    """In bytes, as UTF-8."""


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
    """Those of the board."""
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
    """The languages for which there is a file to begin with."""


class StandingBody(Time):
    """One line: a person's best score, its shared rank, and how many tries it took."""

    rank: int
    person: str
    person_id: int
    vs_reference: float | None
    """How many times faster than the task's own reference; None while its time is unknown."""
    attempts: int
    submission: int
    submitted_at: datetime
    pool: str = ""
    """Which machines timed it: `local`, `modal`, `ray`, or an agent's name."""


class Absent(ResponseBody):
    """A person without a score here, with the latest ranked run that did not pass."""

    person: str
    person_id: int
    verdict: str
    stage: str | None
    message: str
    submission: int
    submitted_at: datetime


class StandingsAnswer(ResponseBody):
    """One leaderboard: one task version on one GPU type, the fastest first."""

    board: str
    gpu: str
    task_version: int
    version_note: str
    deadline: datetime | None
    speed_of_light_ns: float | None
    """The time that the card's memory allows at the least, where it is known."""
    timing: Timing
    reference: Time | None
    """The time of the task's own reference, where it is known."""
    reference_failure: str
    """Why there is none; told to the board's creator only."""
    entries: tuple[StandingBody, ...]
    absent: tuple[Absent, ...]


class LeaderboardsAnswer(ResponseBody):
    """The leaderboards of a board: one for each GPU type, or the one that was asked for."""

    board: BoardLine
    leaderboards: tuple[StandingsAnswer, ...]


MEDIA_TYPE = "application/x-ndjson"


class ExportHead(ResponseBody):
    """The first piece: whose export it is."""

    kind: Literal["board"] = "board"
    board: str
    submissions: int


class ExportRows(ResponseBody):
    """Lines of one of the tables, each by its columns."""

    kind: Literal["rows"] = "rows"
    table: str
    rows: tuple[dict[str, str | int | float | bool | None], ...]


class ExportSource(ResponseBody):
    """A submitted file by the SHA-256 of its bytes; each comes once."""

    kind: Literal["source"] = "source"
    sha256: Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]
    text: str


class ExportEnd(ResponseBody):
    """The last piece: without it the export has broken off."""

    kind: Literal["end"] = "end"


ExportPiece = Annotated[
    ExportHead | ExportRows | ExportSource | ExportEnd, Field(discriminator="kind")
]
PIECE: TypeAdapter[ExportPiece] = TypeAdapter(ExportPiece)
"""Reads a line."""
