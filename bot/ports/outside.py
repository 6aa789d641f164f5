"""External services: an identity provider, and the state of a connection."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from bot.domain.records import KnownPerson


class IdentityProvider(Protocol):
    """An identity provider, used with the authorization code grant of OAuth 2."""

    @property
    def name(self) -> str:
        """Return the provider's name for people."""

    def page(self, state: str, back: str) -> str:
        """Return the address where a person consents; it redirects to `back` with `state`."""

    async def confirmed(self, code: str, back: str) -> KnownPerson:
        """Return the person for a code, which works once; `back` must be that of the page.

        UserError for an invalid code, StoreError while the provider is unavailable.
        """


def _nothing() -> None:
    return None


@dataclass(slots=True)
class ServiceConnection:
    """The state of a connection, written by the front end that owns it."""

    name: str
    measure: Callable[[], float | None] = _nothing

    @property
    def latency_s(self) -> float | None:
        """How long the service takes to answer, in seconds; None while disconnected.

        Infinite until the first answer.
        """
        return self.measure()

    @property
    def is_connected(self) -> bool:
        """Return whether it is connected now."""
        return self.latency_s is not None
