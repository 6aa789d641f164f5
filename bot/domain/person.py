"""A person: one account, whichever door it came through."""

from dataclasses import dataclass
from datetime import datetime

from bot.domain.ids import PersonId


@dataclass(frozen=True, slots=True)
class Person:
    """Someone who submits; `identity` is the door's own name, such as `local:ada`."""

    id: PersonId
    identity: str
    name: str
    created_at: datetime
