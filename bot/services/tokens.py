"""Links programs to a person: makes personal tokens, tells who calls by one, and ends them."""

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

from bot.domain.access import Viewer
from bot.domain.accounts import PREFIX, Token, TokenScope, digest_of
from bot.domain.errors import UserError
from bot.domain.ids import PersonId, TokenId
from bot.domain.person import Person
from bot.domain.rights import Caller, caller
from bot.ports import Clock, Store

MOST_TOKENS = 10
_LONGEST_LABEL = 60
SCOPES = (TokenScope.READ, TokenScope.PERSON, TokenScope.ADMIN)
"""Each may do what those before it may."""


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token with its secret, which exists nowhere else and is shown once."""

    token: Token
    secret: str


async def link(
    store: Store,
    person: PersonId,
    label: str,
    *,
    scope: TokenScope = TokenScope.PERSON,
    expires_at: datetime | None = None,
) -> NewToken:
    """A new token; UserError when the person has enough of them, or is no admin to have such."""
    if scope is TokenScope.ADMIN and not (await store.rights.of(person)).is_admin:
        raise UserError("not-allowed", "only an admin has tokens of scope admin; ask one")
    secret = PREFIX + secrets.token_urlsafe(32)
    name = " ".join(label.split())[:_LONGEST_LABEL] or "token"
    async with store.transaction() as tx:
        kept = await tx.tokens.add(person, digest_of(secret), name, scope, expires_at=expires_at)
        if len(await tx.tokens.of(person)) > MOST_TOKENS:
            raise UserError("too-many-tokens", f"you have {MOST_TOKENS} tokens; revoke one first")
    return NewToken(kept, secret)


async def link_from(
    store: Store,
    clock: Clock,
    asks: Caller,
    label: str,
    *,
    scope: TokenScope,
    lifetime: timedelta,
) -> NewToken:
    """A new token for whoever calls by one; never for more than that one, nor for longer."""
    if SCOPES.index(scope) > SCOPES.index(asks.scope):
        words = f"a token of scope {asks.scope.word} makes none of scope {scope.word}"
        raise UserError("not-allowed", f"{words}; ask with one that may do as much")
    until = clock.now() + lifetime
    if asks.until is not None and until > asks.until:
        until = asks.until
    return await link(store, asks.person, label, scope=scope, expires_at=until)


async def viewer_of_secret(store: Store, clock: Clock, secret: str) -> Caller:
    """Who calls by a token, with the rights that person and token have now.

    UserError `bad-token` when it is nobody's, a worker's, a browser's, revoked or expired.
    """
    token = await store.tokens.find(digest_of(secret))
    own = token is not None and token.is_personal and token.is_live(clock.now())
    person = await store.people.get(token.person) if token is not None and own else None
    if token is None or person is None:
        raise UserError(
            "bad-token",
            "this token is unknown, expired or revoked; make one: /profile link on Discord, or "
            "`podium token create --person NAME` at the machine",
        )
    return await caller_for(store, person, token.scope, until=token.expires_at)


async def caller_for(
    store: Store, person: Person, scope: TokenScope, *, until: datetime | None
) -> Caller:
    """A person whom a door knows by a token or a session of this scope, which ends at `until`."""
    viewer = Viewer(person.id, frozenset({person.identity}))
    return caller(viewer, await store.rights.of(person.id), scope, until=until)


async def unlink(store: Store, person: PersonId, token: TokenId) -> None:
    """End one of a person's tokens."""
    if not await store.tokens.revoke(person, token):
        raise UserError("unknown-token", f"you have no token {token}; /profile tokens lists them")
