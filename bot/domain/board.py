"""A board: one task, its GPU types and its season."""

from dataclasses import dataclass, field
from datetime import datetime

from bot.domain.access import Access, Viewer
from bot.domain.ids import BoardId, PersonId, TaskVersionId
from bot.domain.pins import Pins
from runners.contract.task import Mode, TaskDefinition

HIDDEN = "/"
"""What the name of a board of the house begins with: nobody can give, write or list such a name."""


@dataclass(frozen=True, slots=True)
class NewBoard:
    """A board that is about to be stored; None as deadline means that it stays open."""

    name: str
    gpus: tuple[str, ...]
    deadline: datetime | None
    creator: PersonId
    access: Access = field(default_factory=Access)
    pins: Pins = ()


@dataclass(frozen=True, slots=True)
class Board:
    """A stored board; `task_version` is the version that new submissions are judged by."""

    id: BoardId
    name: str
    gpus: tuple[str, ...]
    deadline: datetime | None
    creator: PersonId
    task_version: TaskVersionId
    created_at: datetime
    access: Access = field(default_factory=Access)
    pins: Pins = ()
    """The pools that alone time its ranked jobs, by GPU type."""

    def pool_for(self, gpu: str, mode: Mode) -> str:
        """The pool that alone takes a job of this mode; empty: any."""
        return dict(self.pins).get(gpu, "") if mode is Mode.RANKED else ""

    @property
    def is_hidden(self) -> bool:
        """Whether it is the house's own, which is in no list and found under no name."""
        return self.name.startswith(HIDDEN)

    def visible_to(self, viewer: Viewer) -> bool:
        """Whether the board exists for this viewer; for its creator it always does."""
        return self.belongs_to(viewer) or self.access.admits(viewer.credentials)

    def belongs_to(self, viewer: Viewer) -> bool:
        """Whether the viewer may change the board and see all that concerns its task."""
        return viewer.sees_all or viewer.person == self.creator

    def is_open(self, now: datetime) -> bool:
        """Whether the season still takes submissions at the aware time `now`."""
        return self.deadline is None or now <= self.deadline


@dataclass(frozen=True, slots=True)
class TaskVersion:
    """One state of a board's task; scores of two versions are never compared."""

    id: TaskVersionId
    board: BoardId
    number: int
    digest: str
    definition: TaskDefinition
    created_at: datetime
