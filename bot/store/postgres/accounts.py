"""Tokens in Postgres."""

from datetime import datetime

from asyncpg import Record

from bot.domain.accounts import Token, TokenScope
from bot.domain.errors import StoreError
from bot.domain.ids import PersonId, TokenId
from bot.ports import Clock
from bot.store.postgres.database import Database


class PostgresTokens:
    """Tokens by digest."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

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
        now = self._clock.now()
        row = await self._database.row(
            "tokens.add", person, digest, label, now, scope.value, expires_at, begun_by
        )
        if row is None:
            raise StoreError("the token could not be stored")
        return _token(row)

    async def find(self, digest: str) -> Token | None:
        row = await self._database.row("tokens.find", digest)
        return None if row is None else _token(row)

    async def of(self, person: PersonId) -> tuple[Token, ...]:
        rows = await self._database.rows("tokens.of", person, self._clock.now())
        return tuple(_token(row) for row in rows)

    async def sessions_of(self, person: PersonId) -> tuple[Token, ...]:
        return tuple(_token(row) for row in await self._database.rows("tokens.sessions_of", person))

    async def of_workers(self) -> tuple[Token, ...]:
        return tuple(_token(row) for row in await self._database.rows("tokens.of_workers"))

    async def revoke_worker(self, label: str) -> bool:
        row = await self._database.row("tokens.revoke_worker", label, self._clock.now())
        return row is not None

    async def revoke(self, person: PersonId, token: TokenId) -> bool:
        row = await self._database.row("tokens.revoke", person, token, self._clock.now())
        return row is not None


def _token(row: Record) -> Token:
    return Token(
        id=TokenId(row["id"]),
        person=PersonId(row["person"]),
        label=row["label"],
        created_at=row["created_at"],
        revoked_at=row["revoked_at"],
        scope=TokenScope(row["scope"]),
        expires_at=row["expires_at"],
        begun_by=None if row["begun_by"] is None else TokenId(row["begun_by"]),
    )
