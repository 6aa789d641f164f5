"""Personal tokens, and what each person may do."""

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
        """Keep the digest of a new token; StoreError when a worker of that label has one.

        It is revoked with the token `begun_by`.
        """

    async def find(self, digest: str) -> Token | None:
        """The token of this digest, unless it is revoked; it may have expired."""

    async def of(self, person: PersonId) -> tuple[Token, ...]:
        """The tokens by which a person calls, neither revoked nor expired, oldest first."""

    async def sessions_of(self, person: PersonId) -> tuple[Token, ...]:
        """The browsers in which a person is signed in and not out again, the newest first."""

    async def of_workers(self) -> tuple[Token, ...]:
        """The tokens of workers that are not revoked, by label."""

    async def revoke(self, person: PersonId, token: TokenId) -> bool:
        """End a token that acts for this person; False when there is none."""

    async def revoke_worker(self, label: str) -> bool:
        """End the token of the worker of this label; False when there is none."""


class RightsStore(Protocol):
    """Rights as each source, such as `discord-guild:123`, saw them last."""

    async def note(self, person: PersonId, source: str, rights: Rights) -> None:
        """Replace what this source vouches for; when, is kept to the minute."""

    async def forget(self, person: PersonId, source: str) -> bool:
        """It vouches for nothing any more; False when it did not."""

    async def of(self, person: PersonId) -> Rights:
        """What all sources vouch for together."""

    async def stale(self, kind: str, age: timedelta, limit: int) -> tuple[RightsGrant, ...]:
        """What sources `kind:...` have not said for so long, the longest ago first."""
