"""Creates, checks and revokes personal tokens, browser sessions and sign-in links."""

import secrets
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from bot.domain import accounts
from bot.domain.accounts import MACHINE, Caller, Person, Rights, Token, TokenHolder, TokenScope
from bot.domain.errors import UserError
from bot.domain.ids import PersonId, TokenId
from bot.domain.records import KnownPerson
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
    secret = accounts.PREFIX + secrets.token_urlsafe(32)
    name = " ".join(label.split())[:_LONGEST_LABEL] or "token"
    async with store.transaction() as tx:
        token = await tx.tokens.add(
            person, accounts.digest_of(secret), name, scope, expires_at=expires_at
        )
        if len(await tx.tokens.of(person)) > MOST_TOKENS:
            raise UserError("too-many-tokens", f"you have {MOST_TOKENS} tokens; revoke one first")
    return NewToken(token, secret)


async def create_token_for_caller(
    store: Store,
    clock: Clock,
    caller: Caller,
    label: str,
    *,
    scope: TokenScope,
    lifetime: timedelta,
) -> NewToken:
    """Create a token for a caller who has one; it has no more rights and no longer lifetime."""
    if SCOPES.index(scope) > SCOPES.index(caller.scope):
        words = f"a token with scope {caller.scope.word} cannot create one with scope {scope.word}"
        raise UserError("not-allowed", f"{words}; use a token with at least that scope")
    until = clock.now() + lifetime
    if caller.until is not None and until > caller.until:
        until = caller.until
    return await create_token(store, caller.person, label, scope=scope, expires_at=until)


async def caller_for_token(store: Store, clock: Clock, secret: str) -> Caller:
    """Return the caller who uses a token, with the current rights of person and token.

    UserError `bad-token` when it is unknown, a worker's, a browser's, revoked or expired.
    """
    holder = await _holder_of(store, clock, secret)
    return holder.caller(holder.token.scope, until=holder.token.expires_at)


async def _holder_of(store: Store, clock: Clock, secret: str) -> TokenHolder:
    holder = await store.tokens.find_holder(accounts.digest_of(secret))
    if holder is None or not holder.token.is_personal or not holder.token.is_live(clock.now()):
        raise _bad_token()
    return holder


def _bad_token() -> UserError:
    return UserError(
        "bad-token",
        "this personal token is unknown, expired or revoked; create one with `/profile link` on "
        "Discord, or with `podium token create --person NAME` on the machine that runs Podium",
    )


async def revoke_token(store: Store, person: PersonId, token: TokenId) -> None:
    """Revoke one of a person's tokens."""
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
    person = await _find_or_create(store, name)
    until = clock.now() + lifetime
    async with audited(store, actor, f"{scope.word}-token", f"person {person.identity}") as tx:
        if scope is TokenScope.ADMIN:
            await tx.rights.replace(person.id, MACHINE, Rights(is_admin=True, is_creator=True))
        return await create_token(
            tx, person.id, "made at the machine", scope=scope, expires_at=until
        )


async def list_tokens(store: Store, name: str) -> tuple[Token, ...]:
    """Return a person's tokens that are not revoked."""
    return await store.tokens.of((await _find(store, name)).id)


async def revoke_access(
    store: Store, actor: PersonId, name: str, token: TokenId | None = None
) -> int:
    """Revoke one token of a person, or all of them with the rights granted on this machine.

    Returns how many tokens were revoked. Revoking all also signs out every browser.
    """
    person = await _find(store, name)
    async with audited(store, actor, "revoke-token", f"person {person.identity}") as tx:
        if token is None:
            return await _revoke_all(tx, person.id)
        await revoke_token(tx, person.id, token)
        return 1


async def _revoke_all(store: Store, person: PersonId) -> int:
    """Revoke every token and session of a person, and the rights granted at this machine."""
    tokens = await store.tokens.of(person)
    revoked = sum([await store.tokens.revoke(person, each.id) for each in tokens])
    for each in await store.tokens.sessions_of(person):
        await store.tokens.revoke(person, each.id)
    await store.rights.remove(person, MACHINE)
    return revoked


async def _find_or_create(store: Store, name: str) -> Person:
    if ":" in name:
        return await _find(store, name)
    if not name.isprintable() or not 1 <= len(name.strip()) <= _LONGEST_NAME:
        raise UserError("bad-name", f"a name must have 1 to {_LONGEST_NAME} printable characters")
    return await store.people.ensure(f"{LOCAL}:{name.strip()}", name.strip())


async def _find(store: Store, name: str) -> Person:
    identity = name if ":" in name else f"{LOCAL}:{name.strip()}"
    person = await store.people.find(identity)
    if person is None:
        raise UserError(
            "unknown-person",
            f"no account named {name!r}; check the name, such as ada or discord:17",
        )
    return person


LIFETIME = timedelta(days=14)
"""The longest that a browser session lasts."""
MOST_SESSIONS = 20
"""The most sessions of one person; another sign-in ends the oldest."""
_TOKEN_SCOPES = {TokenScope.SESSION: TokenScope.PERSON, TokenScope.ADMIN_SESSION: TokenScope.ADMIN}
"""The kind of token that each kind of session is equivalent to."""
_SESSION_SCOPES = {token_scope: scope for scope, token_scope in _TOKEN_SCOPES.items()}


@dataclass(frozen=True, slots=True)
class BrowserSession:
    """A signed-in browser and its person."""

    token: Token
    person: Person
    caller: Caller


async def sign_in_by_token(store: Store, clock: Clock, secret: str, label: str) -> NewToken:
    """Start a session with the rights of a personal token; it ends with the token.

    UserError for a token that is unknown or read-only.
    """
    token = (await _holder_of(store, clock, secret)).token
    scope = _SESSION_SCOPES.get(token.scope)
    if scope is None:
        raise UserError("narrow-token", "this token is read-only; sign in with one that may submit")
    return await _start_session(store, clock, token.person, label, scope=scope, token=token)


async def sign_in_as(store: Store, clock: Clock, known: KnownPerson, label: str) -> NewToken:
    """Start a session for a person identified by Discord, with all rights that they have."""
    person = await store.people.ensure(known.identity, known.name, known.handle)
    return await _start_session(store, clock, person.id, label, scope=TokenScope.ADMIN_SESSION)


async def sign_in_here(store: Store, clock: Clock, name: str, label: str) -> NewToken:
    """Start a session for the user of this machine, an admin like `podium token create --admin`."""
    person = await store.people.ensure(f"{LOCAL}:{name}", name)
    async with audited(store, person.id, "sign-in-link", f"person {person.identity}") as tx:
        await tx.rights.replace(person.id, MACHINE, Rights(is_admin=True, is_creator=True))
        return await _start_session(tx, clock, person.id, label, scope=TokenScope.ADMIN_SESSION)


async def _start_session(
    store: Store,
    clock: Clock,
    person: PersonId,
    label: str,
    *,
    scope: TokenScope,
    token: Token | None = None,
) -> NewToken:
    for oldest in (await sessions_of(store, clock, person))[MOST_SESSIONS - 1 :]:
        await store.tokens.revoke(person, oldest.id)
    secret = f"{accounts.PREFIX}session_{secrets.token_urlsafe(32)}"
    name = " ".join(label.split())[:_LONGEST_LABEL] or "browser"
    until = clock.now() + LIFETIME
    if token is not None and token.expires_at is not None:
        until = min(until, token.expires_at)
    session = await store.tokens.add(
        person,
        accounts.digest_of(secret),
        name,
        scope,
        expires_at=until,
        begun_by=None if token is None else token.id,
    )
    return NewToken(session, secret)


async def session_of(store: Store, clock: Clock, secret: str) -> BrowserSession | None:
    """Return the session of a secret, with its person's current rights; None when it has ended."""
    holder = await store.tokens.find_holder(accounts.digest_of(secret))
    if holder is None:
        return None
    token = holder.token
    if token.scope not in _TOKEN_SCOPES or not token.is_live(clock.now()):
        return None
    # Tokens made in this session end no later than the token it began with; a sign-in by Discord
    # sets no such limit.
    until = None if token.begun_by is None else token.expires_at
    caller = holder.caller(_TOKEN_SCOPES[token.scope], until=until)
    return BrowserSession(token, holder.person, caller)


async def sessions_of(store: Store, clock: Clock, person: PersonId) -> tuple[Token, ...]:
    """Return a person's live sessions, newest first."""
    now = clock.now()
    return tuple(each for each in await store.tokens.sessions_of(person) if each.is_live(now))


async def sign_out(store: Store, person: PersonId, token: TokenId) -> None:
    """End one of a person's sessions, so that its cookie no longer works."""
    sessions = {each.id for each in await store.tokens.sessions_of(person)}
    if token not in sessions or not await store.tokens.revoke(person, token):
        raise UserError("unknown-session", "this session has already ended")


async def sign_out_elsewhere(store: Store, session: BrowserSession) -> int:
    """End every other session of the person; return how many there were."""
    person = session.person.id
    others = [each for each in await store.tokens.sessions_of(person) if each != session.token]
    for each in others:
        await store.tokens.revoke(person, each.id)
    return len(others)


LINK_LIFETIME = timedelta(minutes=10)
_LONGEST_KEY = 200
"""The most characters of a key that are hashed; longer ones are refused."""


@dataclass(frozen=True, slots=True)
class _SignInLink:
    name: str
    until: datetime


@dataclass(slots=True)
class SignInLinks:
    """The links that are still valid, by a digest of their keys."""

    _links: dict[str, _SignInLink] = field(default_factory=dict)

    def key_for(self, name: str, now: datetime) -> str:
        """Create a link for the local account of this name; return its key."""
        key = f"{accounts.PREFIX}once_{secrets.token_urlsafe(32)}"
        self._links[accounts.digest_of(key)] = _SignInLink(name, now + LINK_LIFETIME)
        return key

    def redeem(self, key: str, now: datetime) -> str | None:
        """Return the account name of a valid key and invalidate the key; else None."""
        link = self._links.pop(accounts.digest_of(key), None) if len(key) <= _LONGEST_KEY else None
        return link.name if link is not None and now < link.until else None


async def sign_in_by_link(
    store: Store, clock: Clock, links: SignInLinks, key: str, *, label: str
) -> NewToken:
    """Start a session for the user of this machine; UserError for a used or expired key."""
    name = links.redeem(key, clock.now())
    if name is None:
        raise UserError(
            "sign-in-refused",
            "this link was already used, or is older than ten minutes; restart `podium up` for a "
            "new link, or create a token with `podium token create --person NAME --admin`",
        )
    return await sign_in_here(store, clock, name, label)
