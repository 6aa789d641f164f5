"""Personal tokens and rights: creation, use and revocation."""

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

from bot.domain.accounts import (
    MACHINE,
    PREFIX,
    Caller,
    Person,
    Rights,
    Token,
    TokenScope,
    caller,
    digest_of,
)
from bot.domain.board import Viewer
from bot.domain.errors import UserError
from bot.domain.ids import PersonId, TokenId
from bot.ports import Clock, Store
from bot.services.audit import audited

MOST_TOKENS = 10
_LONGEST_LABEL = 60
SCOPES = (TokenScope.READ, TokenScope.PERSON, TokenScope.ADMIN)
"""Each includes the rights of those before it."""


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token with its secret, which is shown once and not stored."""

    token: Token
    secret: str


async def create_token(
    store: Store,
    person: PersonId,
    label: str,
    *,
    scope: TokenScope = TokenScope.PERSON,
    expires_at: datetime | None = None,
) -> NewToken:
    """Create a token; UserError if the person has too many or may not have this scope."""
    if scope is TokenScope.ADMIN and not (await store.rights.of(person)).is_admin:
        raise UserError("not-allowed", "only admins can have tokens with scope admin; ask an admin")
    secret = PREFIX + secrets.token_urlsafe(32)
    name = " ".join(label.split())[:_LONGEST_LABEL] or "token"
    async with store.transaction() as tx:
        kept = await tx.tokens.add(person, digest_of(secret), name, scope, expires_at=expires_at)
        if len(await tx.tokens.of(person)) > MOST_TOKENS:
            raise UserError("too-many-tokens", f"you have {MOST_TOKENS} tokens; revoke one first")
    return NewToken(kept, secret)


async def create_token_for_caller(
    store: Store,
    clock: Clock,
    asks: Caller,
    label: str,
    *,
    scope: TokenScope,
    lifetime: timedelta,
) -> NewToken:
    """Create a token for a caller who has one; it has no more rights and no longer lifetime."""
    if SCOPES.index(scope) > SCOPES.index(asks.scope):
        words = f"a token with scope {asks.scope.word} cannot create one with scope {scope.word}"
        raise UserError("not-allowed", f"{words}; use a token with at least that scope")
    until = clock.now() + lifetime
    if asks.until is not None and until > asks.until:
        until = asks.until
    return await create_token(store, asks.person, label, scope=scope, expires_at=until)


async def caller_for_token(store: Store, clock: Clock, secret: str) -> Caller:
    """Return who calls with a token, with the current rights of person and token.

    UserError `bad-token` when it is unknown, a worker's, a browser's, revoked or expired.
    """
    token = await store.tokens.find(digest_of(secret))
    own = token is not None and token.is_personal and token.is_live(clock.now())
    person = await store.people.get(token.person) if token is not None and own else None
    if token is None or person is None:
        raise UserError(
            "bad-token",
            "this token is unknown, expired or revoked; create one with `/profile link` on "
            "Discord, or with `podium token create --person NAME` on the machine that runs Podium",
        )
    return await caller_for(store, person, token.scope, until=token.expires_at)


async def caller_for(
    store: Store, person: Person, scope: TokenScope, *, until: datetime | None
) -> Caller:
    """Return the caller for a person with a token or session of this scope that ends at `until`."""
    viewer = Viewer(person.id, frozenset({person.identity}))
    return caller(viewer, await store.rights.of(person.id), scope, until=until)


async def revoke_token(store: Store, person: PersonId, token: TokenId) -> None:
    """End one of a person's tokens."""
    if not await store.tokens.revoke(person, token):
        raise UserError(
            "unknown-token", f"you have no token {token}; list your tokens with `/profile tokens`"
        )


LOCAL = "local"
"""The kind of local accounts, those of people at this machine."""
_LONGEST_NAME = 64


async def create_local_token(
    store: Store,
    clock: Clock,
    actor: PersonId,
    name: str,
    *,
    scope: TokenScope,
    lifetime: timedelta,
) -> NewToken:
    """Create a token of this scope for a person; an admin token makes the person an admin.

    `name` is a local account, created if new, or an identity such as `discord:17`; UserError for an
    unknown identity.
    """
    person = await _person(store, name)
    until = clock.now() + lifetime
    async with audited(store, actor, f"{scope.word}-token", f"person {person.identity}") as tx:
        if scope is TokenScope.ADMIN:
            await tx.rights.note(person.id, MACHINE, Rights(is_admin=True, is_creator=True))
        return await create_token(
            tx, person.id, "made at the machine", scope=scope, expires_at=until
        )


async def list_tokens(store: Store, name: str) -> tuple[Token, ...]:
    """Return a person's tokens that are not revoked."""
    return await store.tokens.of((await _known(store, name)).id)


async def revoke_access(
    store: Store, actor: PersonId, name: str, token: TokenId | None = None
) -> int:
    """Revoke one token of a person, or all of them with the rights granted on this machine.

    Returns how many tokens were revoked. Revoking all also signs out every browser.
    """
    person = await _known(store, name)
    async with audited(store, actor, "revoke-token", f"person {person.identity}") as tx:
        if token is None:
            return await _withdraw_all(tx, person.id)
        await revoke_token(tx, person.id, token)
        return 1


async def _withdraw_all(store: Store, person: PersonId) -> int:
    """Revoke every token and session of a person, and the rights granted at this machine."""
    own = await store.tokens.of(person)
    ended = sum([await store.tokens.revoke(person, each.id) for each in own])
    for each in await store.tokens.sessions_of(person):
        await store.tokens.revoke(person, each.id)
    await store.rights.forget(person, MACHINE)
    return ended


async def _person(store: Store, name: str) -> Person:
    if ":" in name:
        return await _known(store, name)
    if not name.isprintable() or not 1 <= len(name.strip()) <= _LONGEST_NAME:
        raise UserError("bad-name", f"a name must have 1 to {_LONGEST_NAME} printable characters")
    return await store.people.ensure(f"{LOCAL}:{name.strip()}", name.strip())


async def _known(store: Store, name: str) -> Person:
    identity = name if ":" in name else f"{LOCAL}:{name.strip()}"
    found = await store.people.find(identity)
    if found is None:
        raise UserError(
            "unknown-person",
            f"no account named {name!r}; check the name, such as ada or discord:17",
        )
    return found
