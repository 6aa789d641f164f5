"""The publication of a task: what was requested, its progress, and the result."""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from bot.domain.board import Access, Board, Pins, SeasonRules
from bot.domain.errors import UserError
from bot.domain.ids import PersonId, PublicationId, TaskVersionId
from bot.domain.tasks.bundle import TaskBundle
from bot.domain.tasks.competition import CompetitionDefinition, CompetitionEntry
from bot.domain.tasks.grading import NO_PROGRAM, Grading
from bot.domain.tasks.lint import TaskReport
from runners.contract.task import Grader, TaskDefinition

PER_PERSON = 2
"""The most publications of one person that are checked at the same time, for each front end."""


@dataclass(frozen=True, slots=True)
class PublishRequest:
    """The requested settings of a board; stored with a task zip as JSON.

    The board's name defaults to the task's. Without `gpus`, a new board gets those of the task or
    all possible ones. Without `deadline`, the board keeps its own, unless `endless` removes it.
    """

    person: PersonId
    name: str | None = None
    gpus: tuple[str, ...] = ()
    deadline: datetime | None = None
    endless: bool = False
    as_admin: bool = False
    """Whether to change another person's board, as an admin."""
    access: Access | None = None
    """Who may see the board; None keeps it, and makes a new board public."""
    onto: TaskVersionId | None = None
    """The task version that the board must have now, NO_BOARD if it must be new; None: any."""
    zip_name: str = ""
    """The name of the uploaded zip, without its suffix."""
    strict: bool = True
    """False ignores unknown keys of task.yml, as for competitions."""
    pins: Pins = ()
    """Changes to the board's pins, as from `bot.domain.board.parse_pins`."""
    grader: Grader | None = None
    """The grader that the creator chose; None leaves it to task.yml, the board and the check."""
    graders: tuple[tuple[str, Grader], ...] = ()
    """The same for boards of a competition, by name."""
    rules: SeasonRules | None = None
    """When the board opens and what it accepts after its deadline; None keeps its rules."""
    competition: bool = False
    """Whether the zip holds a competition instead of one task; `name` is then the competition's."""

    @property
    def title(self) -> str:
        """Return what is published, such as `Leaderboard sort`."""
        return f"{'Competition' if self.competition else 'Leaderboard'} {self.name or ''}"

    def of_entry(self, entry: CompetitionEntry) -> "PublishRequest":
        """Return the request for one board of a competition; settings here override the file's."""
        unset = self.deadline is None and not self.endless
        return replace(
            self,
            name=entry.name,
            gpus=self.gpus or entry.gpus,
            deadline=entry.deadline if unset else self.deadline,
            endless=entry.deadline is None if unset else self.endless,
            rules=entry.rules,
            grader=dict(self.graders).get(entry.name, self.grader),
            graders=(),
            competition=False,
        )

    def board_name(self, task: TaskDefinition) -> str:
        """Return the name of the board."""
        return self.name or task.name


class PublishChange(StrEnum):
    """What publishing did."""

    CREATED = "created"
    """There was no board of this name."""
    NEW_VERSION = "new-version"
    """The task differs: the new version judges new submissions."""
    CONFIGURED = "configured"
    """Only the GPU types, the deadline, the pools or who may see it differ."""
    UNCHANGED = "unchanged"
    """Nothing differs."""


@dataclass(frozen=True, slots=True)
class Published:
    """The board after publishing, its task version's number and note, and what changed."""

    board: Board
    version: int
    change: PublishChange
    note: str = ""

    @property
    def summary(self) -> str:
        """Return in a sentence what publishing did."""
        words = f"{self.board.name} on {', '.join(self.board.gpus)}"
        match self.change:
            case PublishChange.CREATED:
                return f"{words} is published."
            case PublishChange.NEW_VERSION:
                return f"{words} now has task version {self.version}."
            case PublishChange.CONFIGURED | PublishChange.UNCHANGED:
                return f"{words}: {self.change}, task version {self.version}."


class UnsoundTaskError(UserError):
    """The check of a board's task found errors; the report lists them all.

    Its code is `choose-grader` if the graders disagree and the creator has to choose one.
    """

    def __init__(self, report: TaskReport, message: str, board: str = "") -> None:
        super().__init__("choose-grader" if report.undecided else "unsound-task", message)
        self.report = report
        self.board = board


@dataclass(frozen=True, slots=True)
class Draft:
    """A task to check and publish, with its files and which grader grades it."""

    bundle: TaskBundle
    task: TaskDefinition
    request: PublishRequest
    grading: Grading = NO_PROGRAM
    competition: CompetitionDefinition | None = None
    """The competition to which its board belongs."""

    @property
    def board_name(self) -> str:
        """The name of its board."""
        return self.request.board_name(self.task)


@dataclass(frozen=True, slots=True)
class PublishedDraft:
    """A published draft, the reports of its check, and which grader grades it and why.

    There are no reports if the board already had this state of the task.
    """

    published: Published
    reports: tuple[TaskReport, ...]
    grading: str = ""


@dataclass(frozen=True, slots=True)
class NewPublication:
    """A task zip to publish; `wish` is the request, `place` is where it is shown, both as JSON."""

    door: str
    person: PersonId
    zip: bytes
    wish: str
    place: str = "{}"


@dataclass(frozen=True, slots=True)
class Publication:
    """A stored publication; `tries` counts the processes that started it, including this one.

    `state` is a `PublicationState` as JSON, the same for every front end.
    """

    id: PublicationId
    person: PersonId
    zip: bytes
    wish: str
    place: str
    tries: int
    state: str = "{}"


@dataclass(frozen=True, slots=True)
class PublicationSummary:
    """A publication as it is shown, without its zip; nothing changes after `ended_at`."""

    id: PublicationId
    person: PersonId
    wish: str
    state: str
    tries: int
    ended_at: datetime | None
    has_zip: bool = False
    """Whether its zip is still stored, so that it can be repeated."""
