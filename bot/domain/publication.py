"""The publication of a task: what was requested, how far it is, and the result."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from bot.domain.board import Access, Board
from bot.domain.errors import UserError
from bot.domain.ids import PersonId, ReleaseId, TaskVersionId
from bot.domain.pins import Pins
from bot.domain.tasks.bundle import TaskBundle
from bot.domain.tasks.report import TaskReport
from runners.contract.task import TaskDefinition


@dataclass(frozen=True, slots=True)
class PublishRequest:
    """How a board is to be, whatever its task is; stored with a task zip as JSON.

    No `name`: the task's. No `gpus`: see `default_gpus`. No `deadline`: the board's present one,
    unless `endless` opens the board without a deadline.
    """

    person: PersonId
    name: str | None = None
    gpus: tuple[str, ...] = ()
    deadline: datetime | None = None
    endless: bool = False
    as_admin: bool = False
    """An admin may change a board that is somebody else's."""
    access: Access | None = None
    """Who may see the board; None leaves it as it is, and a new one public."""
    onto: TaskVersionId | None = None
    """The task version that the board must still have, NO_BOARD for a new one; None: any."""
    zip_name: str = ""
    """The name of the uploaded zip, without its suffix."""
    strict: bool = True
    """False ignores unknown keys of task.yml, as the reading of a competition does."""
    pins: Pins = ()
    """Changes of the pools that alone time its ranked jobs, as `bot.domain.pins` reads them."""

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
    def told(self) -> str:
        """What publishing did, as a sentence."""
        words = f"{self.board.name} on {', '.join(self.board.gpus)}"
        match self.change:
            case PublishChange.CREATED:
                return f"{words} is published."
            case PublishChange.NEW_VERSION:
                return f"{words} has task version {self.version} now."
            case PublishChange.CONFIGURED | PublishChange.UNCHANGED:
                return f"{words}: {self.change}, task version {self.version}."


class UnsoundTaskError(UserError):
    """The check of a task found errors; the report lists them all."""

    def __init__(self, report: TaskReport, message: str) -> None:
        super().__init__("unsound-task", message)
        self.report = report


@dataclass(frozen=True, slots=True)
class Draft:
    """A task to check and publish, with its files."""

    bundle: TaskBundle
    task: TaskDefinition
    request: PublishRequest

    @property
    def board_name(self) -> str:
        """The name of its board."""
        return self.request.board_name(self.task)


@dataclass(frozen=True, slots=True)
class Released:
    """A published draft and the reports of its check.

    No reports if the board already had this state of the task.
    """

    published: Published
    reports: tuple[TaskReport, ...]


@dataclass(frozen=True, slots=True)
class NewRelease:
    """A task zip; `wish` is the request as JSON, `place` the door's own JSON: where it is shown."""

    door: str
    person: PersonId
    zip: bytes
    wish: str
    place: str = "{}"


@dataclass(frozen=True, slots=True)
class Publication:
    """A stored one with its state; `tries` counts how often a process has begun it, also this one.

    `state` is a `PublicationState` as JSON, of every door alike.
    """

    id: ReleaseId
    person: PersonId
    zip: bytes
    wish: str
    place: str
    tries: int
    state: str = "{}"


@dataclass(frozen=True, slots=True)
class PublicationSummary:
    """A release as it is shown, without its zip; nothing changes after `ended_at`."""

    id: ReleaseId
    person: PersonId
    wish: str
    state: str
    tries: int
    ended_at: datetime | None
