"""Personal tokens in memory."""

from dataclasses import replace

from bot.domain.ids import PersonId, TokenId
from bot.domain.token import Token
from bot.store.memory.tables import Tables
from bot.store.text import storable


class MemoryTokens:
    """Tokens by digest."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._tokens: dict[str, Token] = {}

    async def add(self, person: PersonId, digest: str, label: str) -> Token:
        number = TokenId(self._tables.next_id())
        token = Token(number, person, storable(label), self._tables.clock.now(), None)
        self._tokens[digest] = token
        return token

    async def find(self, digest: str) -> Token | None:
        token = self._tokens.get(digest)
        return None if token is None or token.revoked_at is not None else token

    async def of(self, person: PersonId) -> tuple[Token, ...]:
        own = (each for each in self._tokens.values() if each.person == person)
        return tuple(sorted((each for each in own if each.revoked_at is None), key=_number))

    async def revoke(self, person: PersonId, token: TokenId) -> bool:
        for digest, each in self._tokens.items():
            if (each.id, each.person, each.revoked_at) == (token, person, None):
                self._tokens[digest] = replace(each, revoked_at=self._tables.clock.now())
                return True
        return False


def _number(token: Token) -> int:
    return token.id
