"""Tokens in memory."""

from dataclasses import replace
from datetime import datetime

from bot.domain.errors import StoreError
from bot.domain.ids import PersonId, TokenId
from bot.domain.token import Token, TokenScope
from bot.store.memory.tables import Tables
from bot.store.text import storable


class MemoryTokens:
    """Tokens by digest."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._tokens: dict[str, Token] = {}

    async def add(
        self,
        person: PersonId,
        digest: str,
        label: str,
        scope: TokenScope = TokenScope.PERSON,
        *,
        expires_at: datetime | None = None,
    ) -> Token:
        if scope is TokenScope.WORKER and self._of_worker(label):
            raise StoreError(f"worker {label} has a token")
        number, now = TokenId(self._tables.next_id()), self._tables.clock.now()
        token = Token(number, person, storable(label), now, None, scope, expires_at)
        self._tokens[digest] = token
        return token

    async def find(self, digest: str) -> Token | None:
        token = self._tokens.get(digest)
        return None if token is None or token.revoked_at is not None else token

    async def of(self, person: PersonId) -> tuple[Token, ...]:
        own = (each for each in self._live(TokenScope.PERSON) if each.person == person)
        return tuple(sorted(own, key=_number))

    async def of_workers(self) -> tuple[Token, ...]:
        return tuple(sorted(self._live(TokenScope.WORKER), key=_label))

    async def revoke(self, person: PersonId, token: TokenId) -> bool:
        own = [each for each in await self.of(person) if each.id == token]
        return self._end(own)

    async def revoke_worker(self, label: str) -> bool:
        return self._end(self._of_worker(label))

    def _live(self, scope: TokenScope) -> list[Token]:
        found = self._tokens.values()
        return [each for each in found if each.scope is scope and each.revoked_at is None]

    def _of_worker(self, label: str) -> list[Token]:
        return [each for each in self._live(TokenScope.WORKER) if each.label == storable(label)]

    def _end(self, tokens: list[Token]) -> bool:
        now = self._tables.clock.now()
        for digest, each in self._tokens.items():
            if each in tokens:
                self._tokens[digest] = replace(each, revoked_at=now)
        return bool(tokens)


def _number(token: Token) -> int:
    return token.id


def _label(token: Token) -> str:
    return token.label
