"""Requests to publish boards, and the progress of their checks."""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated

from pydantic import AwareDatetime, Field, StringConstraints

from bot.domain.api.base import WHOLE, GpuName, Name, RequestBody, ResponseBody
from bot.domain.api.boards import BoardLine
from bot.domain.board import SourceVisibility, Visibility
from runners.contract.task import Grader

MOST_GPUS = 64
MOST_GUESTS = 200

Deadline = Annotated[
    AwareDatetime, Field(ge=datetime(1971, 1, 1, tzinfo=UTC), lt=datetime(9000, 1, 1, tzinfo=UTC))
]
"""With a time zone, in years that can be represented in every zone."""
Gpus = Annotated[tuple[GpuName, ...], Field(max_length=MOST_GPUS)]
Pools = Annotated[
    tuple[Annotated[str, StringConstraints(min_length=1, max_length=150)], ...],
    Field(max_length=MOST_GPUS),
]
Guest = Annotated[
    str, StringConstraints(pattern=r"^[a-z][a-z-]{0,30}:[^\s:\x00-\x1f\x7f-\x9f]{1,100}$")
]
"""A credential, such as `discord:17`, `discord-role:5` or `local:ada`."""


class BoardOptions(RequestBody):
    """The requested settings of a board; missing ones stay as they are."""

    gpus: Gpus = ()
    """All its GPU types; a new board defaults to its task's, else to every type offered here."""
    deadline: Deadline | None = None
    endless: bool = False
    """Remove the deadline."""
    visibility: Visibility | None = None
    source_visibility: SourceVisibility | None = None
    """When others may read the submitted sources."""
    pools: Pools = ()
    """The only pool that times ranked runs: `modal`, `A100=local`, or `any` for every pool."""


class TaskOptions(BoardOptions):
    """The form fields sent with a task zip."""

    lenient: bool = False
    """Ignore unknown keys of task.yml and empty case lists, for tasks written for KernelBot."""
    grader: Grader | None = None
    """Who grades a task with its own evaluation; None leaves it to task.yml and the check."""


class NewBoardOptions(TaskOptions):
    """The form fields sent with the zip of a new board."""

    name: Name | None = None
    """Defaults to the task's own name."""


class GuestsOrder(RequestBody):
    """People to invite to a private board, or to remove from it."""

    guests: Annotated[tuple[Guest, ...], Field(min_length=1, max_length=MOST_GUESTS)]


class GuestsAnswer(ResponseBody):
    """Everyone who is invited to a board."""

    guests: tuple[str, ...]


class RejudgeOrder(RequestBody):
    """The earlier version whose best submissions the current task judges again."""

    version: Annotated[int, Field(ge=1, lt=1 << 31), WHOLE]


class Rejudging(ResponseBody):
    """How many submissions are judged again, and by which task version."""

    submissions: int
    version: int


class CheckState(StrEnum):
    """The progress of a task's check."""

    WAITING = "waiting"
    """It waits for its turn."""
    RUNNING = "running"
    """The task's own solutions are running."""
    PUBLISHED = "published"
    """The solutions got their expected verdicts, and the board is published."""
    REFUSED = "refused"
    """Nothing was published; `problem` says why."""


class CheckRun(ResponseBody):
    """One run of a check, in words; `ok` is set once it has ended."""

    words: str
    ok: bool | None


class CheckProblem(ResponseBody):
    """Why nothing was published; `code` is for programs, `detail` says what to do."""

    code: str
    detail: str


class GpuCheck(ResponseBody):
    """A GPU type of the check; `obstacle` says why the task was not run on it."""

    gpu: str
    obstacle: str


class PublishedAnswer(ResponseBody):
    """What publishing did."""

    board: BoardLine | None
    """The current board; None: it was deleted since."""
    task_version: int
    version_note: str
    change: str
    """`created`, `new-version`, `configured`, or `unchanged`."""
    checked: tuple[GpuCheck, ...]
    """Empty if the board has had this state of the task before."""


class CheckAnswer(ResponseBody):
    """The check of a task zip: its solutions are run, then its board is published."""

    id: int
    name: str
    """The name of the board."""
    state: CheckState
    begun: tuple[str, ...]
    """What the check has started, in words."""
    runs: tuple[CheckRun, ...]
    remarks: tuple[str, ...]
    """Which grader grades and why, then the findings, once it has ended."""
    grading: str = ""
    """Which grader grades and why; empty until it has ended, and if nothing was checked."""
    problem: CheckProblem | None
    published: PublishedAnswer | None


class ChecksAnswer(ResponseBody):
    """The caller's checks of the last month, newest first, at most a hundred."""

    checks: tuple[CheckAnswer, ...]
