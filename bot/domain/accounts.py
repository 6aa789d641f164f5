"""A person, what they may do, and what their tokens are good for."""

import hashlib
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal

from bot.domain.board import NOBODY, Viewer
from bot.domain.errors import UserError
from bot.domain.ids import PersonId, TokenId

PREFIX = "podium_"
"""So that a leaked one is recognised by people and by scanners."""


class TokenScope(StrEnum):
    """What a token is good for; it is refused everywhere else."""

    READ = "read"
    """To read what the person may read."""
    PERSON = "person"
    """To act for the person whose it is: to submit, for example."""
    ADMIN = "admin"
    """To act for the person as an admin too, as long as the person is one."""
    WORKER = "worker"
    """To judge as the worker that its label names."""
    SESSION = "session"
    """A browser in which the person is signed in, to act as the person."""
    ADMIN_SESSION = "admin-session"
    """One in which the person acts as an admin too, as long as the person is one."""

    @property
    def word(self) -> str:
        """What people choose it by."""
        return "submit" if self is TokenScope.PERSON else self.value


_PERSONAL = frozenset({TokenScope.READ, TokenScope.PERSON, TokenScope.ADMIN})


@dataclass(frozen=True, slots=True)
class Token:
    """A token as it is kept: nobody can tell from it what its owner sends.

    `person` is whose it is, or who made that of a worker.
    """

    id: TokenId
    person: PersonId
    label: str
    created_at: datetime
    revoked_at: datetime | None
    scope: TokenScope = TokenScope.PERSON
    expires_at: datetime | None = None
    begun_by: TokenId | None = None
    """Of a browser that was signed in by a token: that token, with which it ends."""

    @property
    def may(self) -> str:
        """Its scope in the word that people choose it by."""
        return self.scope.word

    @property
    def is_personal(self) -> bool:
        """Whether it is one to call with for its person; a browser's cookie is none."""
        return self.scope in _PERSONAL

    @property
    def of_worker(self) -> bool:
        """Whether it is a worker's, and nobody's to call with."""
        return self.scope is TokenScope.WORKER

    def is_live(self, now: datetime) -> bool:
        """Whether it is neither revoked nor expired at this time."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


def scope_of(word: Literal["read", "submit", "admin"]) -> TokenScope:
    """The scope that people name by this word."""
    return TokenScope.PERSON if word == "submit" else TokenScope(word)


def digest_of(secret: str) -> str:
    """What is stored of a token; it is random, so a plain hash cannot be guessed back."""
    return hashlib.sha256(secret.encode()).hexdigest()


MACHINE = "machine"
"""The source of rights that were given at the machine which runs Podium."""
_ACTING = frozenset({TokenScope.PERSON, TokenScope.ADMIN})


@dataclass(frozen=True, slots=True)
class Rights:
    """What one source vouches for, such as a guild: it counts until that source says otherwise."""

    credentials: frozenset[str] = frozenset()
    is_admin: bool = False
    is_creator: bool = False

    def __or__(self, other: "Rights") -> "Rights":
        """What two sources vouch for together."""
        return Rights(
            self.credentials | other.credentials,
            is_admin=self.is_admin or other.is_admin,
            is_creator=self.is_creator or other.is_creator,
        )


@dataclass(frozen=True, slots=True)
class Caller(Viewer):
    """Who asks from outside; `sees_all` only where person and token both are an admin's."""

    scope: TokenScope = TokenScope.READ
    is_creator: bool = False
    """Whether the person may create boards."""
    until: datetime | None = None
    """When the token or the session ends by which they call; None: at no set time."""


ANYBODY = Caller(NOBODY)
"""A reader without an account."""


def caller(
    person: Viewer, rights: Rights, scope: TokenScope, *, until: datetime | None = None
) -> Caller:
    """A person with these rights who calls by a token of this scope."""
    is_admin = rights.is_admin and scope is TokenScope.ADMIN
    return Caller(
        person=person.person,
        credentials=person.credentials | rights.credentials,
        sees_all=is_admin,
        scope=scope,
        is_creator=rights.is_creator or rights.is_admin,
        until=until,
    )


def require_person(asks: Caller) -> None:
    """UserError `bad-token` for anybody without an account."""
    if asks.person == NOBODY:
        raise UserError("bad-token", "this needs a token: send Authorization: Bearer TOKEN")


def require_acting(asks: Caller) -> None:
    """UserError for who may only read: anybody without an account, and a token for reading."""
    require_person(asks)
    if asks.scope not in _ACTING:
        raise UserError("narrow-token", "this token only reads; make one that may submit")


def require_creator(asks: Caller) -> None:
    """UserError for who may not create boards."""
    require_acting(asks)
    if not asks.is_creator:
        raise UserError("not-allowed", "creating boards takes the right to it; ask an admin")


def require_admin(asks: Caller) -> None:
    """UserError for who is no admin, or calls by a token that is not an admin's."""
    require_acting(asks)
    if not asks.sees_all:
        words = "this takes an admin, and a token of scope admin"
        raise UserError("not-allowed", f"{words}; `podium token create --admin` makes one")


DEMO = "demo"
"""The kind of the accounts whose kernels `podium demo` hands in; no door has such."""
HOUSE = "podium:house"
"""The identity for which the house's own jobs run; no door has accounts of this kind."""


@dataclass(frozen=True, slots=True)
class Person:
    """Someone who submits; `identity` is the door's own name, such as `local:ada`."""

    id: PersonId
    identity: str
    name: str
    created_at: datetime
