"""A door's line to a service elsewhere, which others may look at."""

from collections.abc import Callable
from dataclasses import dataclass


def _nothing() -> None:
    return None


@dataclass(slots=True)
class Line:
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
