"""A person's request to a front end, stored from before its acknowledgement until it is done."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

TOKEN_LIVES = timedelta(minutes=15)
"""How long the request's token can be used to answer."""
KEPT = timedelta(days=1)
"""How long a finished request is remembered, so that a repeated one is not executed again."""


@dataclass(frozen=True, slots=True)
class InteractionRequest:
    """A request to execute; `id` begins with the front end, such as discord:5."""

    id: str
    door: str
    request: str
    """The front end's own text, from which the whole request can be restored."""
    token: str = field(repr=False)
    """A secret: its holder can speak in the bot's name."""
    at: datetime


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A request that a process began and did not finish; `tries` includes this attempt."""

    id: str
    request: str
    token: str | None = field(repr=False)
    at: datetime
    tries: int
