"""What every route is handed: the store, the time, and what this door was told."""

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from fastapi import Request

from bot.ports import Clock, Store

DOOR = "web"


@dataclass(frozen=True, slots=True)
class DoorSettings:
    """Where the door listens; with a certificate and its key it speaks HTTPS itself."""

    host: str
    port: int
    certificate: Path | None = None
    key: Path | None = None

    @property
    def url(self) -> str:
        """The door's address, as somebody on this machine writes it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'http' if self.certificate is None else 'https'}://{host}:{self.port}"


@dataclass(slots=True)
class Closing:
    """Whether the door is about to close: who waits for something then goes at once."""

    begun: bool = False


@dataclass(frozen=True, slots=True)
class Door:
    """Podium, as the routes of this door see it."""

    store: Store
    clock: Clock
    lease: timedelta
    """How long what a silent agent holds stays its own."""
    harness: str
    """The version of the harness that judges here; agents must have the same."""
    package: str
    """The version of Podium, as pip knows it; empty in a checkout."""
    closing: Closing = field(default_factory=Closing)


def door_of(request: Request) -> Door:
    """The door through which a request came."""
    door = request.app.state.door
    if not isinstance(door, Door):
        raise TypeError("the application was made without its door")
    return door
