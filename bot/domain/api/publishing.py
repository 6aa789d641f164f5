"""The bodies for publishing boards and competitions, for checks, and for competitions."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import Field, StringConstraints

from bot.domain.api.base import WHOLE, GpuName, Name, RequestBody, ResponseBody, Zoned
from bot.domain.api.boards import BoardLine
from bot.domain.board import Board, SourceVisibility, Viewer, Visibility
from bot.domain.competition import Competition, CompetitionStandings
from runners.contract.task import Grader

MOST_GPUS = 64
MOST_GUESTS = 200

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
    deadline: Zoned | None = None
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
    """The current board; None: it has been deleted since."""
    task_version: int
    version_note: str
    change: str
    """`created`, `new-version`, `configured`, or `unchanged`."""
    checked: tuple[GpuCheck, ...]
    """Empty if the board has had this state of the task before."""
    grading: str = ""
    """Which grader grades and why; empty from a server that does not say."""


class CheckAnswer(ResponseBody):
    """The check of a zip: the solutions of its tasks are run, then its boards are published."""

    id: int
    name: str
    """The name of the board or competition."""
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
    competition: str | None = None
    """The name of the competition, if the zip holds one."""
    boards: tuple[PublishedAnswer, ...] = ()
    """The boards of a published competition; `published` is None then."""


class ChecksAnswer(ResponseBody):
    """The caller's checks of the last month, newest first, at most a hundred."""

    checks: tuple[CheckAnswer, ...]


class CompetitionOptions(RequestBody):
    """The form fields sent with the zip of a competition."""

    pools: Pools = ()
    """The only pool that times ranked runs of its boards, as for one board."""


class ExtendOrder(RequestBody):
    """The new deadline of those boards of a competition that would close earlier."""

    deadline: Zoned


class CompetitionState(StrEnum):
    """Whether people may see and enter a competition."""

    UPCOMING = "upcoming"
    """It opens later; until then only its creator and admins see more than name and date."""
    OPEN = "open"
    """A board accepts ranked submissions, or will once it opens."""
    CLOSED = "closed"
    """The last board has closed."""

    @classmethod
    def of(cls, found: Competition, now: datetime) -> "CompetitionState":
        """Return the state of a competition."""
        if not found.has_opened(now):
            return cls.UPCOMING
        return cls.CLOSED if found.has_closed(now) else cls.OPEN


class CompetitionBoardBody(ResponseBody):
    """A board of a competition."""

    name: str
    opens_at: datetime | None
    """When it opens; None: it has already opened."""
    board: BoardLine | None
    """None until it opens to the caller."""

    @classmethod
    def of(cls, board: Board, viewer: Viewer, now: datetime) -> "CompetitionBoardBody":
        """Return a board as this viewer may see it."""
        line = BoardLine.of(board, now) if board.visible_to(viewer) else None
        return cls(name=board.name, opens_at=board.rules.opens_at, board=line)


class CompetitionAnswer(ResponseBody):
    """A competition; until it opens to the caller, only its name, state and opening date."""

    name: str
    state: CompetitionState
    opens_at: datetime
    closes_at: datetime | None
    """When the last board closes; None while one has no deadline."""
    description: str
    creator_id: int | None
    ranks: tuple[float, ...]
    """The points of the first places; empty: 100 x best / own time."""
    boards: tuple[CompetitionBoardBody, ...]

    @classmethod
    def of(cls, found: Competition, viewer: Viewer, now: datetime) -> "CompetitionAnswer":
        """Return a competition as this viewer may see it."""
        return CompetitionAnswer(
            name=found.name,
            state=CompetitionState.of(found, now),
            opens_at=found.opens_at,
            closes_at=found.closes_at,
            description=found.description,
            creator_id=found.creator or None,
            ranks=found.points.ranks,
            boards=tuple(CompetitionBoardBody.of(each, viewer, now) for each in found.boards),
        )


class CompetitionsAnswer(ResponseBody):
    """The competitions that the caller may know of, by name; `next` is the next page's cursor."""

    competitions: tuple[CompetitionAnswer, ...]
    next: str | None = None


class LeaderboardName(ResponseBody):
    """One board on one GPU type."""

    board: str
    gpu: str


class OverallBody(ResponseBody):
    """A person in the overall ranking; equal totals share a rank."""

    rank: int
    person: str
    person_id: int
    total: float
    points: tuple[float | None, ...]
    """For each of `leaderboards`; None where the person is not ranked, which counts as 0."""


class CompetitionStandingsAnswer(CompetitionAnswer):
    """A competition with its overall ranking on the boards that the caller sees."""

    leaderboards: tuple[LeaderboardName, ...]
    entries: tuple[OverallBody, ...]

    @classmethod
    def seen(
        cls, found: CompetitionStandings, viewer: Viewer, now: datetime
    ) -> "CompetitionStandingsAnswer":
        """Return a competition and its ranking as this viewer may see them."""
        entries = (
            OverallBody(
                rank=each.rank,
                person=each.person_name,
                person_id=each.person,
                total=each.total,
                points=each.points,
            )
            for each in found.entries
        )
        return cls(
            **dict(CompetitionAnswer.of(found.competition, viewer, now)),
            leaderboards=tuple(
                LeaderboardName(board=board.name, gpu=gpu) for board, gpu in found.leaderboards
            ),
            entries=tuple(entries),
        )
