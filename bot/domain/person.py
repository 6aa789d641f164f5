"""A person: one account, whichever door it came through."""

from dataclasses import dataclass
from datetime import datetime

from bot.domain.ids import PersonId

DEMO = "demo"
"""The kind of the accounts whose kernels `podium demo` hands in; no door has such."""
HOUSE = "podium:house"
"""The identity for which the house's own jobs run; no door has accounts of this kind."""


@dataclass(frozen=True, slots=True)
class Person:
    """Someone who submits; `identity` is the door's own name, such as `local:ada`."""

    id: PersonId
    identity: str
    name: str
    created_at: datetime
