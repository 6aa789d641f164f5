"""The caller's account and tokens."""

from datetime import datetime
from typing import Annotated, Literal, cast

from pydantic import Field, StringConstraints

from bot.domain.accounts import Token
from bot.domain.api.base import WHOLE, RequestBody, ResponseBody

Scope = Literal["read", "submit", "admin"]
"""The scope of a token; each includes those before it."""


class Me(ResponseBody):
    """The token's person, and what the token may do."""

    id: int
    identity: str
    name: str
    scope: Scope
    is_admin: bool
    """Whether the person is an admin and this token has admin scope."""
    is_creator: bool
    credentials: tuple[str, ...]
    """The credentials that give access to private boards and to those of a guild."""


class TokenOrder(RequestBody):
    """A token to create; its scope and lifetime may not exceed those of the caller's token."""

    label: Annotated[str, StringConstraints(min_length=1, max_length=60)]
    scope: Scope = "submit"
    days: Annotated[int, Field(ge=1, le=3650), WHOLE] = 90


class TokenAnswer(ResponseBody):
    """The stored data of a token, without its secret."""

    id: int
    label: str
    scope: Scope
    created_at: datetime
    expires_at: datetime | None

    @classmethod
    def of(cls, token: Token) -> "TokenAnswer":
        """Return a token's data."""
        return TokenAnswer(
            id=token.id,
            label=token.label,
            scope=cast(Scope, token.scope.word),
            created_at=token.created_at,
            expires_at=token.expires_at,
        )


class TokensAnswer(ResponseBody):
    """The caller's own tokens that are not revoked."""

    tokens: tuple[TokenAnswer, ...]


class TokenMade(TokenAnswer):
    """A new token; `token` is shown only once."""

    token: str
