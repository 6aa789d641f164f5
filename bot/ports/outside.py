"""Services outside of Podium: who confirms an identity, and whether a connection stands."""

from collections.abc import Callable
from dataclasses import dataclass
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


def _nothing() -> None:
    return None


@dataclass(slots=True)
class ServiceConnection:
    """Written by the door whose line it is; it knows nothing of who reads."""

    name: str
    measure: Callable[[], float | None] = _nothing

    @property
    def latency_s(self) -> float | None:
        """How long the service takes to answer, in seconds; None while there is no line.

        Infinite until it has answered for the first time.
        """
        return self.measure()

    @property
    def stands(self) -> bool:
        """Whether there is a line now."""
        return self.latency_s is not None
