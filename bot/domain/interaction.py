"""What a person asked a door for, kept from before it is acknowledged until it is done."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

TOKEN_LIVES = timedelta(minutes=15)
"""For which a person can be answered by the token of what they asked."""
KEPT = timedelta(days=1)
"""How long something done is remembered, so that it is not done again when it is told again."""


@dataclass(frozen=True, slots=True)
class InteractionRequest:
    """Something that is about to be done; `id` begins with the door, such as discord:5."""

    id: str
    door: str
    request: str
    """The door's own words, of which all that was asked can be made again."""
    token: str = field(repr=False)
    """A secret: whoever has it speaks in the bot's name."""
    at: datetime


@dataclass(frozen=True, slots=True)
class Unfinished:
    """Something that a process began and did not end; `tries` counts this one."""

    id: str
    request: str
    token: str | None = field(repr=False)
    at: datetime
    tries: int
