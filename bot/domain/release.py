"""A task that waits to be proven and published: kept, so that a restart goes on with it."""

from dataclasses import dataclass
from datetime import datetime

from bot.domain.ids import PersonId, ReleaseId


@dataclass(frozen=True, slots=True)
class NewRelease:
    """A task zip; `wish` and `place` are the door's own text: what is wanted, where it is told."""

    door: str
    person: PersonId
    zip: bytes
    wish: str
    place: str


@dataclass(frozen=True, slots=True)
class Release:
    """A stored one; `tries` counts how often a process has begun it, this one included."""

    id: ReleaseId
    person: PersonId
    zip: bytes
    wish: str
    place: str
    tries: int


@dataclass(frozen=True, slots=True)
class ReleaseNote:
    """What is told of a release, without its zip; since `ended_at` nothing moves any more."""

    id: ReleaseId
    person: PersonId
    wish: str
    place: str
    tries: int
    ended_at: datetime | None
