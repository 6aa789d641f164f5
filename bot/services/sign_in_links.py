"""Links that sign in the user of this machine: valid for ten minutes, once.

They exist only in the memory of the process that shows them.
"""

import secrets
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from bot.domain.accounts import PREFIX, digest_of
from bot.domain.errors import UserError
from bot.ports import Clock, Store
from bot.services.sessions import sign_in_here
from bot.services.tokens import NewToken

LIFETIME = timedelta(minutes=10)
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class _Offer:
    name: str
    until: datetime


@dataclass(slots=True)
class SignInLinks:
    """The links that are still valid, by a digest of their keys."""

    _offers: dict[str, _Offer] = field(default_factory=dict)

    def key_for(self, name: str, now: datetime) -> str:
        """Create a link for the local account of this name; return its key."""
        key = f"{PREFIX}once_{secrets.token_urlsafe(32)}"
        self._offers[digest_of(key)] = _Offer(name, now + LIFETIME)
        return key

    def take(self, key: str, now: datetime) -> str | None:
        """Return the account name of a valid key and invalidate the key; else None."""
        offer = self._offers.pop(digest_of(key), None) if len(key) <= _LONGEST else None
        return offer.name if offer is not None and now < offer.until else None


async def sign_in_by_link(
    store: Store, clock: Clock, links: SignInLinks, key: str, *, label: str
) -> NewToken:
    """Start a session for the user of this machine; UserError for a used or expired key."""
    name = links.take(key, clock.now())
    if name is None:
        raise UserError(
            "sign-in-refused",
            "this link was used already, or is older than ten minutes; start `podium up` again for "
            "another one, or make a token: `podium token create --person NAME --admin`",
        )
    return await sign_in_here(store, clock, name, label)
