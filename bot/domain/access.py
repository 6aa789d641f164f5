"""Who may see a board, and when its sources are shown to others."""

from dataclasses import dataclass
from enum import StrEnum

from bot.domain.ids import PersonId

NOBODY = PersonId(0)
"""No account has this number: it stands for a reader who has none."""


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who looks, and what a door vouches for: an identity, roles, membership of a house.

    Each credential is a door's own word, such as `discord:17`, `discord-role:5` or
    `discord-guild:123`. `sees_all` is for admins, and for whoever sits at the machine that runs
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
