"""Who vouches for who somebody is, when they sign in at a page."""

from typing import Protocol

from bot.domain.records import KnownPerson


class Identities(Protocol):
    """A place where people have accounts, asked by the authorization code grant of OAuth 2."""

    @property
    def name(self) -> str:
        """Of the place, as people know it."""

    def page(self, state: str, back: str) -> str:
        """Where somebody agrees to be known; from there they are sent to `back` with `state`."""

    async def confirmed(self, code: str, back: str) -> KnownPerson:
        """Whom a code is for, which is good once; `back` is as it was for the page.

        UserError for a code that is not good, StoreError while the place is away.
        """
