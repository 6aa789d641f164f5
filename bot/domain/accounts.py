"""A person, their rights, and the scopes of their tokens."""

import hashlib
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Literal

from bot.domain.board import NOBODY, Viewer
from bot.domain.errors import UserError
from bot.domain.ids import PersonId, TokenId
from bot.domain.names import skeleton, with_handle

PREFIX = "podium_"
"""The start of every secret, by which people and scanners recognize a leaked token."""


class TokenScope(StrEnum):
    """What a token may be used for; it is refused for everything else."""

    READ = "read"
    """To read what its person may read."""
    PERSON = "person"
    """To act for its person: to submit, for example."""
    ADMIN = "admin"
    """To act for its person, as an admin too while the person is one."""
    WORKER = "worker"
    """To judge as the worker named by its label."""
    SESSION = "session"
    """A browser in which the person is signed in, with the rights of `PERSON`."""
    ADMIN_SESSION = "admin-session"
    """A browser session with the rights of `ADMIN`, while the person is an admin."""

    @property
    def word(self) -> str:
        """Return the word by which people choose this scope."""
        return "submit" if self is TokenScope.PERSON else self.value


_PERSONAL_SCOPES = frozenset({TokenScope.READ, TokenScope.PERSON, TokenScope.ADMIN})


@dataclass(frozen=True, slots=True)
class Token:
    """A token as stored, from which its secret cannot be computed.

    `person` is its owner; for a worker's token, the person who created it.
    """

    id: TokenId
    person: PersonId
    label: str
    created_at: datetime
    revoked_at: datetime | None
    scope: TokenScope = TokenScope.PERSON
    expires_at: datetime | None = None
    begun_by: TokenId | None = None
    """For a browser session, the token that started it: when that is revoked, the session ends."""

    @property
    def is_personal(self) -> bool:
        """Return whether it is for a person's programs, as opposed to a browser session."""
        return self.scope in _PERSONAL_SCOPES

    @property
    def is_worker_token(self) -> bool:
        """Return whether it belongs to a worker; no person can use it."""
        return self.scope is TokenScope.WORKER

    def is_live(self, now: datetime) -> bool:
        """Return whether it is neither revoked nor expired at this time."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


def scope_of(word: Literal["read", "submit", "admin"]) -> TokenScope:
    """Return the scope that this word means."""
    return TokenScope.PERSON if word == "submit" else TokenScope(word)


def digest_of(secret: str) -> str:
    """Return the hash of a token to store; its secret is random, so a plain hash is safe."""
    return hashlib.sha256(secret.encode()).hexdigest()


MACHINE = "machine"
"""The source of rights that were granted at the machine running Podium."""
_ACTING_SCOPES = frozenset({TokenScope.PERSON, TokenScope.ADMIN})


@dataclass(frozen=True, slots=True)
class Rights:
    """The rights granted by one source, such as a guild, until that source changes them."""

    credentials: frozenset[str] = frozenset()
    is_admin: bool = False
    is_creator: bool = False

    def __or__(self, other: "Rights") -> "Rights":
        """Return the rights of both sources together."""
        return Rights(
            self.credentials | other.credentials,
            is_admin=self.is_admin or other.is_admin,
            is_creator=self.is_creator or other.is_creator,
        )


@dataclass(frozen=True, slots=True)
class Caller(Viewer):
    """A viewer with the rights of a token; `sees_all` requires an admin and an admin's token."""

    scope: TokenScope = TokenScope.READ
    is_creator: bool = False
    """Whether the person may create boards."""
    until: datetime | None = None
    """When their token or session ends; None if it has no set end."""
    name: str = field(default="", compare=False)
    """The person's name, for display; empty without an account."""


ANYBODY = Caller(NOBODY)
"""A reader without an account."""


def make_caller(
    person: Viewer,
    rights: Rights,
    scope: TokenScope,
    *,
    until: datetime | None = None,
    name: str = "",
) -> Caller:
    """Return the caller for a person with these rights and a token of this scope."""
    is_admin = rights.is_admin and scope is TokenScope.ADMIN
    return Caller(
        person=person.person,
        credentials=person.credentials | rights.credentials,
        sees_all=is_admin,
        scope=scope,
        is_creator=rights.is_creator or rights.is_admin,
        until=until,
        name=name,
    )


def needs_token() -> UserError:
    """Return the error for a request without a token: how to send one, and where to get it."""
    return UserError(
        "bad-token",
        "this needs a token: send Authorization: Bearer TOKEN. Create one on your page /me, "
        "with `/profile link` on Discord, or by `podium token create --person NAME` on the server",
    )


def require_person(caller: Caller) -> None:
    """Raise UserError `bad-token` for a caller without an account."""
    if caller.person == NOBODY:
        raise needs_token()


def require_acting(caller: Caller) -> None:
    """Raise UserError for a caller who may only read: without an account, or with a read token."""
    require_person(caller)
    if caller.scope not in _ACTING_SCOPES:
        raise UserError("narrow-token", "this token is read-only; create one with scope submit")


def require_creator(caller: Caller) -> None:
    """Raise UserError for a caller who may not create boards."""
    require_acting(caller)
    if not caller.is_creator:
        raise UserError(
            "not-allowed", "you do not have the right to create boards; ask an admin for it"
        )


def require_admin(caller: Caller) -> None:
    """Raise UserError for a caller who is not an admin, or whose token lacks the scope admin."""
    require_acting(caller)
    if not caller.sees_all:
        words = "this requires an admin and a token with scope admin"
        raise UserError("not-allowed", f"{words}; create one with `podium token create --admin`")


DEMO = "demo"
"""The kind of identity of the people for whom `podium demo` submits; no front end uses it."""
SYSTEM_IDENTITY = "podium:house"
"""The identity that owns the system's own jobs; no front end uses this kind."""
SYSTEM_NAME = "Podium"
"""The name of its account."""


DELETED = "deleted"
"""The kind of identity of deleted accounts; no front end uses it."""
DELETED_NAME = "deleted account"


@dataclass(frozen=True, slots=True)
class Person:
    """A person with an account; a front end sets `identity`, such as `local:ada`."""

    id: PersonId
    identity: str
    name: str
    created_at: datetime
    handle: str = ""
    """Their user name at the front end, which is unique there; empty if the identity has it."""

    @property
    def name_can_be_reset(self) -> bool:
        """Return whether there is a handle that differs from the name, and so can replace it."""
        return bool(self.handle) and skeleton(self.name) != skeleton(self.handle)

    @property
    def distinct_name(self) -> str:
        """Return the name with the handle; of a deleted account, the name alone."""
        if self.identity.startswith(f"{DELETED}:"):
            return self.name
        return with_handle(self.name, self.identity, self.handle)


@dataclass(frozen=True, slots=True)
class TokenHolder:
    """A token with its person, and the person's rights from all sources together."""

    token: Token
    person: Person
    rights: Rights

    def caller(self, scope: TokenScope, *, until: datetime | None) -> Caller:
        """Return the caller for the person with a token or session of this scope."""
        viewer = Viewer(self.person.id, frozenset({self.person.identity}))
        return make_caller(viewer, self.rights, scope, until=until, name=self.person.name)
