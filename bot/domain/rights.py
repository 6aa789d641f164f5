"""What a person may, and what the token by which somebody calls is good for."""

from dataclasses import dataclass
from datetime import datetime

from bot.domain.access import NOBODY, Viewer
from bot.domain.accounts import TokenScope
from bot.domain.errors import UserError

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
