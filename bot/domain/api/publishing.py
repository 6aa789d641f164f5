"""Boards on their way: what is wanted of one, and how the check of its task goes."""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated

from pydantic import AwareDatetime, Field, StringConstraints

from bot.domain.api.base import WHOLE, GpuName, Name, RequestBody, ResponseBody
from bot.domain.api.boards import BoardLine
from bot.domain.board import SourceVisibility, Visibility

MOST_GPUS = 64
MOST_GUESTS = 200

Deadline = Annotated[
    AwareDatetime,
    Field(ge=datetime(1971, 1, 1, tzinfo=UTC), lt=datetime(9000, 1, 1, tzinfo=UTC)),
]
"""With a zone, in years that stay representable in every one."""
Gpus = Annotated[tuple[GpuName, ...], Field(max_length=MOST_GPUS)]
Pools = Annotated[
    tuple[Annotated[str, StringConstraints(min_length=1, max_length=150)], ...],
    Field(max_length=MOST_GPUS),
]
Guest = Annotated[
    str, StringConstraints(pattern=r"^[a-z][a-z-]{0,30}:[^\s:\x00-\x1f\x7f-\x9f]{1,100}$")
]
"""A credential, such as `discord:17`, `discord-role:5` or `local:ada`."""


class BoardWish(RequestBody):
    """What is wanted of a board; what is not named stays as it is."""

    gpus: Gpus = ()
    """All its GPU types; of a new board those of its task, else every type that is offered here."""
    deadline: Deadline | None = None
    endless: bool = False
    """Take the deadline away."""
    visibility: Visibility | None = None
    source_visibility: SourceVisibility | None = None
    """When others may read what was submitted."""
    pools: Pools = ()
    """Which pool alone times ranked runs: `modal`, `A100=local`, or `any` to let every pool."""


class TaskWish(BoardWish):
    """The fields next to a task zip."""

    lenient: bool = False
    """Ignore unknown keys of task.yml and empty case lists, for tasks written for KernelBot."""


class NewBoardWish(TaskWish):
    """The fields next to the zip of a new board."""

    name: Name | None = None
    """Else the task's own."""


class GuestsOrder(RequestBody):
    """Who may see a private board, or may not any more."""

    guests: Annotated[tuple[Guest, ...], Field(min_length=1, max_length=MOST_GUESTS)]


class GuestsAnswer(ResponseBody):
    """Everybody who was invited to a board."""

    guests: tuple[str, ...]


class RejudgeOrder(RequestBody):
    """Whose best submissions are judged by the present task: those of this earlier version."""

    version: Annotated[int, Field(ge=1, lt=1 << 31), WHOLE]


class Rejudging(ResponseBody):
    """How many submissions are judged again, and by which task version."""

    submissions: int
    version: int


class CheckState(StrEnum):
    """How far the check of a task is."""

    WAITING = "waiting"
    """It waits for its turn."""
    RUNNING = "running"
    """The task's own solutions are run."""
    PUBLISHED = "published"
    """They ended as they must, and the board is there."""
    REFUSED = "refused"
    """Nothing was published; `problem` says why."""


class CheckRun(ResponseBody):
    """One run of a check, in words; `ok` once it has ended."""

    words: str
    ok: bool | None


class CheckProblem(ResponseBody):
    """Why nothing was published; `code` is for programs, `detail` says what to do."""

    code: str
    detail: str


class GpuCheck(ResponseBody):
    """On which GPU type the task was run; `obstacle` says why it was not."""

    gpu: str
    obstacle: str


class PublishedAnswer(ResponseBody):
    """What publishing did."""

    board: BoardLine | None
    """The board as it is now; None: it was deleted since."""
    task_version: int
    version_note: str
    change: str
    """`created`, `new-version`, `configured`, or `unchanged` where all was so already."""
    checked: tuple[GpuCheck, ...]
    """Empty where the board has had this state of the task before."""


class CheckAnswer(ResponseBody):
    """The check of a task zip: its solutions are run, then its board is published."""

    id: int
    name: str
    """Of the board."""
    state: CheckState
    begun: tuple[str, ...]
    """What the check has begun with, in words."""
    runs: tuple[CheckRun, ...]
    remarks: tuple[str, ...]
    """What was found once it has ended."""
    problem: CheckProblem | None
    published: PublishedAnswer | None


class ChecksAnswer(ResponseBody):
    """One's own checks of the last month, newest first, at most a hundred."""

    checks: tuple[CheckAnswer, ...]
