"""Tokens in memory."""

from dataclasses import replace
from datetime import datetime

from bot.domain.errors import StoreError
from bot.domain.ids import PersonId, TokenId
from bot.domain.token import Token, TokenScope
from bot.store.text import storable
from tests.doubles.memory_store.tables import Tables


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
        begun_by: TokenId | None = None,
    ) -> Token:
        if scope is TokenScope.WORKER and self._of_worker(label):
            raise StoreError(f"worker {label} has a token")
        number, now = TokenId(self._tables.next_id()), self._tables.clock.now()
        token = Token(number, person, storable(label), now, None, scope, expires_at, begun_by)
        self._tokens[digest] = token
        return token

    async def find(self, digest: str) -> Token | None:
        token = self._tokens.get(digest)
        return None if token is None or token.revoked_at is not None else token

    async def of(self, person: PersonId) -> tuple[Token, ...]:
        now = self._tables.clock.now()
        own = (each for each in self._live() if each.person == person and each.is_personal)
        return tuple(sorted((each for each in own if each.is_live(now)), key=_number))

    async def sessions_of(self, person: PersonId) -> tuple[Token, ...]:
        own = (each for each in self._live() if each.person == person and each.of_browser)
        return tuple(sorted(own, key=_number, reverse=True))

    async def of_workers(self) -> tuple[Token, ...]:
        return tuple(sorted((each for each in self._live() if each.of_worker), key=_label))

    async def revoke(self, person: PersonId, token: TokenId) -> bool:
        own = (*await self.of(person), *await self.sessions_of(person))
        return self._end([each for each in own if each.id == token])

    async def revoke_worker(self, label: str) -> bool:
        return self._end(self._of_worker(label))

    def _live(self) -> list[Token]:
        return [each for each in self._tokens.values() if each.revoked_at is None]

    def _of_worker(self, label: str) -> list[Token]:
        wanted = storable(label)
        return [each for each in self._live() if each.of_worker and each.label == wanted]

    def _end(self, tokens: list[Token]) -> bool:
        now = self._tables.clock.now()
        ended = {each.id for each in tokens}
        for digest, each in self._tokens.items():
            if each.id in ended or each.begun_by in ended:
                self._tokens[digest] = replace(each, revoked_at=now)
        return bool(tokens)


def _number(token: Token) -> int:
    return token.id


def _label(token: Token) -> str:
    return token.label
