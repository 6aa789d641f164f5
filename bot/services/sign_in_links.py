"""Links by which the person at the machine signs in: each for ten minutes, and used once.

They are in the memory of the process that shows them, and nowhere else.
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
    """The links that may still be used, by a digest of their keys."""

    _offers: dict[str, _Offer] = field(default_factory=dict)

    def key_for(self, name: str, now: datetime) -> str:
        """The key of a new link for the account of this name at the machine."""
        key = f"{PREFIX}once_{secrets.token_urlsafe(32)}"
        self._offers[digest_of(key)] = _Offer(name, now + LIFETIME)
        return key

    def take(self, key: str, now: datetime) -> str | None:
        """Whom the key is for, once and as long as it lasts; else None."""
        offer = self._offers.pop(digest_of(key), None) if len(key) <= _LONGEST else None
        return offer.name if offer is not None and now < offer.until else None


async def sign_in_by_link(
    store: Store, clock: Clock, links: SignInLinks, key: str, *, label: str
) -> NewToken:
    """A session of the person at the machine; UserError for a key that was used or is too old."""
    name = links.take(key, clock.now())
    if name is None:
        raise UserError(
            "sign-in-refused",
            "this link was used already, or is older than ten minutes; start `podium up` again for "
            "another one, or make a token: `podium token create --person NAME --admin`",
        )
    return await sign_in_here(store, clock, name, label)
