"""Personal tokens, with which programs act for a person."""

from typing import Protocol

from bot.domain.ids import PersonId, TokenId
from bot.domain.token import Token


class Tokens(Protocol):
    """Tokens by digest."""

    async def add(self, person: PersonId, digest: str, label: str) -> Token:
        """Keep the digest of a new token."""

    async def find(self, digest: str) -> Token | None:
        """The token of this digest, unless it is revoked."""

    async def of(self, person: PersonId) -> tuple[Token, ...]:
        """A person's tokens that are not revoked, oldest first."""

    async def revoke(self, person: PersonId, token: TokenId) -> bool:
        """End a token of this person; False when there is none."""
