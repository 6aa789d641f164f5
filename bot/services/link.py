"""Links programs to a person: makes personal tokens, tells whose one is, and ends them."""

import secrets
from dataclasses import dataclass

from bot.domain.errors import UserError
from bot.domain.ids import PersonId, TokenId
from bot.domain.person import Person
from bot.domain.token import PREFIX, Token, TokenScope, digest_of
from bot.ports import Store

MOST_TOKENS = 10
_LONGEST_LABEL = 60


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token with its secret, which exists nowhere else and is shown once."""

    token: Token
    secret: str


async def link(store: Store, person: PersonId, label: str) -> NewToken:
    """A new token; UserError when the person has enough of them."""
    if len(await store.tokens.of(person)) >= MOST_TOKENS:
        raise UserError("too-many-tokens", f"you have {MOST_TOKENS} tokens; revoke one first")
    secret = PREFIX + secrets.token_urlsafe(32)
    name = " ".join(label.split())[:_LONGEST_LABEL] or "token"
    return NewToken(await store.tokens.add(person, digest_of(secret), name), secret)


async def whose(store: Store, secret: str) -> Person:
    """The person for whom a token acts; UserError when it is unknown or revoked."""
    token = await store.tokens.find(digest_of(secret))
    own = token is not None and token.scope is TokenScope.PERSON
    person = await store.people.get(token.person) if token is not None and own else None
    if person is None:
        raise UserError("bad-token", "this token is unknown or revoked; make one: /profile link")
    return person


async def unlink(store: Store, person: PersonId, token: TokenId) -> None:
    """End one of a person's tokens."""
    if not await store.tokens.revoke(person, token):
        raise UserError("unknown-token", f"you have no token {token}; /profile tokens lists them")
