"""Personal tokens, and the rights of each person."""

from datetime import datetime, timedelta
from typing import Protocol

from bot.domain.accounts import Rights, Token, TokenScope
from bot.domain.ids import PersonId, TokenId
from bot.domain.records import RightsGrant


class Tokens(Protocol):
    """Tokens by digest."""

    async def add(
        self,
        person: PersonId,
        digest: str,
        label: str,
        scope: TokenScope = TokenScope.PERSON,
        *,
        expires_at: datetime | None = None,
        begun_by: TokenId | None = None,
    ) -> Token:
        """Store the digest of a new token; StoreError when a worker with this label has one.

        It is revoked together with the token `begun_by`.
        """

    async def find(self, digest: str) -> Token | None:
        """Return the token with this digest unless it is revoked; it may have expired."""

    async def of(self, person: PersonId) -> tuple[Token, ...]:
        """Return a person's tokens that are neither revoked nor expired, oldest first."""

    async def sessions_of(self, person: PersonId) -> tuple[Token, ...]:
        """Return the browser sessions in which a person is signed in, newest first."""

    async def of_workers(self) -> tuple[Token, ...]:
        """Return the tokens of workers that are not revoked, by label."""

    async def revoke(self, person: PersonId, token: TokenId) -> bool:
        """Revoke a token that acts for this person; False when there is none."""

    async def revoke_worker(self, label: str) -> bool:
        """Revoke the token of the worker with this label; False when there is none."""


class RightsStore(Protocol):
    """Rights as last reported by each source, such as `discord-guild:123`."""

    async def note(self, person: PersonId, source: str, rights: Rights) -> None:
        """Replace the rights from this source; the time of the report is stored to the minute."""

    async def forget(self, person: PersonId, source: str) -> bool:
        """Remove the rights from this source; False when there were none."""

    async def of(self, person: PersonId) -> Rights:
        """Return the rights from all sources together."""

    async def stale(self, kind: str, age: timedelta, limit: int) -> tuple[RightsGrant, ...]:
        """Return at most `limit` grants of `kind:...` unconfirmed for this long, oldest first."""
