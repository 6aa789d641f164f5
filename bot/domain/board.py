"""A board: one task, its GPU types, its deadline and who may see it."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from bot.domain.ids import BoardId, PersonId, TaskVersionId
from bot.domain.pins import Pins
from runners.contract.task import Mode, TaskDefinition

NOBODY = PersonId(0)
"""The number of no account; used for a reader without one."""


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who is looking, and their credentials: identity, roles, guild membership.

    A front end sets each credential, such as `discord:17`, `discord-role:5` or
    `discord-guild:123`. `sees_all` is for admins, and for people at the machine that runs Podium,
    who could read its database anyway.
    """

    person: PersonId
    credentials: frozenset[str] = frozenset()
    sees_all: bool = False


class Visibility(StrEnum):
    """Who may see a board."""

    PUBLIC = "public"
    """Everyone, or every member of its guild."""
    PRIVATE = "private"
    """Only its guests."""


class SourceVisibility(StrEnum):
    """When others may read submitted sources; one's own is always readable."""

    AFTER_DEADLINE = "after-deadline"
    """Once the board accepts no more submissions."""
    ALWAYS = "always"
    """As soon as it is submitted."""
    NEVER = "never"
    """Never."""


@dataclass(frozen=True, slots=True)
class Access:
    """The access rule of one board; `house` and guests are credentials of viewers."""

    visibility: Visibility = Visibility.PUBLIC
    house: str | None = None
    """The credential that everyone who sees the board needs, such as `discord-guild:123`."""
    source: SourceVisibility = SourceVisibility.AFTER_DEADLINE
    guests: frozenset[str] = frozenset()

    def admits(self, credentials: frozenset[str]) -> bool:
        """Return whether people, or a channel, with these credentials may see the board."""
        if self.house is not None and self.house not in credentials:
            return False
        return self.visibility is Visibility.PUBLIC or bool(self.guests & credentials)

    @property
    def named(self) -> frozenset[str]:
        """Return every credential that this rule checks."""
        return self.guests if self.house is None else self.guests | {self.house}

    def shows_sources(self, *, is_open: bool) -> bool:
        """Return whether others may read a source while the board is open, or after it closed."""
        match self.source:
            case SourceVisibility.AFTER_DEADLINE:
                return not is_open
            case SourceVisibility.ALWAYS:
                return True
            case SourceVisibility.NEVER:
                return False


HIDDEN = "/"
"""The prefix of names of the system's own boards, which people cannot give, write or list."""


@dataclass(frozen=True, slots=True)
class NewBoard:
    """A board to store; the deadline None means that it stays open."""

    name: str
    gpus: tuple[str, ...]
    deadline: datetime | None
    creator: PersonId
    access: Access = field(default_factory=Access)
    pins: Pins = ()


@dataclass(frozen=True, slots=True)
class Board:
    """A stored board; `task_version` judges new submissions."""

    id: BoardId
    name: str
    gpus: tuple[str, ...]
    deadline: datetime | None
    creator: PersonId
    task_version: TaskVersionId
    created_at: datetime
    access: Access = field(default_factory=Access)
    pins: Pins = ()
    """The only pools that time its ranked jobs, by GPU type."""

    def pool_for(self, gpu: str, mode: Mode) -> str:
        """Return the only pool that takes a job of this mode; empty: any."""
        return dict(self.pins).get(gpu, "") if mode is Mode.RANKED else ""

    @property
    def is_hidden(self) -> bool:
        """Return whether it is the system's own, which is never listed or found by name."""
        return self.name.startswith(HIDDEN)

    def visible_to(self, viewer: Viewer) -> bool:
        """Return whether the viewer may see the board; its creator always may."""
        return self.belongs_to(viewer) or self.access.admits(viewer.credentials)

    def belongs_to(self, viewer: Viewer) -> bool:
        """Return whether the viewer may change the board and see everything about its task."""
        return viewer.sees_all or viewer.person == self.creator

    def is_open(self, now: datetime) -> bool:
        """Return whether the season accepts submissions at the aware time `now`."""
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
