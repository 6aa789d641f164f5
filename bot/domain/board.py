"""A board: one task, its GPU types, its deadline and who may see it."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from bot.domain.ids import BoardId, PersonId, TaskVersionId
from bot.domain.pins import Pins
from runners.contract.task import Mode, TaskDefinition

NOBODY = PersonId(0)
"""No account has this number: it stands for a reader who has none."""


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who looks, and what a door vouches for: an identity, roles, membership of a house.

    Each credential is a door's own word, such as `discord:17`, `discord-role:5` or
    `discord-guild:123`. `sees_all` is for admins, and for anyone who sits at the machine that runs
    Podium and could read its database anyway.
    """

    person: PersonId
    credentials: frozenset[str] = frozenset()
    sees_all: bool = False


class Visibility(StrEnum):
    """To whom a board exists."""

    PUBLIC = "public"
    """To everyone, or to every member of its house."""
    PRIVATE = "private"
    """To its guests alone."""


class SourceVisibility(StrEnum):
    """When others may read what was submitted; one's own can be read always."""

    AFTER_DEADLINE = "after-deadline"
    """Once the board takes no more submissions."""
    ALWAYS = "always"
    """As soon as it is submitted."""
    NEVER = "never"
    """At no time."""


@dataclass(frozen=True, slots=True)
class Access:
    """The rule of one board; its house and its guests are credentials that a viewer may have."""

    visibility: Visibility = Visibility.PUBLIC
    house: str | None = None
    """What everyone who sees the board must have, such as `discord-guild:123`."""
    source: SourceVisibility = SourceVisibility.AFTER_DEADLINE
    guests: frozenset[str] = frozenset()

    def admits(self, credentials: frozenset[str]) -> bool:
        """Whether the board exists for people with these credentials, or for a room of them."""
        if self.house is not None and self.house not in credentials:
            return False
        return self.visibility is Visibility.PUBLIC or bool(self.guests & credentials)

    @property
    def named(self) -> frozenset[str]:
        """Every credential that this rule asks for."""
        return self.guests if self.house is None else self.guests | {self.house}

    def shows_sources(self, *, is_open: bool) -> bool:
        """Whether others may read a submission while the board is open, or once it has closed."""
        match self.source:
            case SourceVisibility.AFTER_DEADLINE:
                return not is_open
            case SourceVisibility.ALWAYS:
                return True
            case SourceVisibility.NEVER:
                return False


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
