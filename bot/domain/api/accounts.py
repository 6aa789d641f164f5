"""Who one is here, and one's tokens."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from bot.domain.api.base import WHOLE, RequestBody, ResponseBody

Scope = Literal["read", "submit", "admin"]
"""What a token is good for; each has what those before it have."""


class Me(ResponseBody):
    """Whose token came, and what may be done with it."""

    id: int
    identity: str
    name: str
    scope: Scope
    is_admin: bool
    """Whether the person is an admin, and this token one for it."""
    is_creator: bool
    credentials: tuple[str, ...]
    """By which private boards and those of a guild are seen."""


class TokenOrder(RequestBody):
    """A token to make: never more than the one that asks, nor longer."""

    label: Annotated[str, StringConstraints(min_length=1, max_length=60)]
    scope: Scope = "submit"
    days: Annotated[int, Field(ge=1, le=3650), WHOLE] = 90


class TokenAnswer(ResponseBody):
    """What is known of a token; its secret is not."""

    id: int
    label: str
    scope: Scope
    created_at: datetime
    expires_at: datetime | None


class TokensAnswer(ResponseBody):
    """One's own tokens that are not revoked."""

    tokens: tuple[TokenAnswer, ...]


class TokenMade(TokenAnswer):
    """A new token; `token` is shown this once."""

    token: str
