"""A task that waits to be proven and published: kept, so that a restart goes on with it."""

from dataclasses import dataclass
from datetime import datetime

from bot.domain.ids import PersonId, ReleaseId


@dataclass(frozen=True, slots=True)
class NewRelease:
    """A task zip; `wish` is the request as JSON, `place` the door's own JSON: where it is shown."""

    door: str
    person: PersonId
    zip: bytes
    wish: str
    place: str = "{}"


@dataclass(frozen=True, slots=True)
class Release:
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
class ReleaseNote:
    """A release as it is shown, without its zip; nothing changes after `ended_at`."""

    id: ReleaseId
    person: PersonId
    wish: str
    state: str
    tries: int
    ended_at: datetime | None
