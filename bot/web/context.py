"""What every route is handed: the store, the time, and what this door was told."""

import asyncio
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from fastapi import Request

from bot.domain.prices import Prices
from bot.ports import Clock, Identities, Store
from bot.ports.outside import ServiceConnection
from bot.services.cache import ResponseCache, SharedCache
from bot.services.sign_in_links import SignInLinks
from runners.contract.runner import Runner

DOOR = "web"
EXPORTS = 2
"""Whole boards that are handed out at the same time."""
_WRITTEN_MOST = 32
"""Long answers that are kept: each may be some hundred kilobytes."""


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """Where the door listens; with a certificate and its key it speaks HTTPS itself."""

    host: str
    port: int
    certificate: Path | None = None
    key: Path | None = None
    proxies: tuple[str, ...] = ()
    """Addresses and networks whose word for who asks, and by which protocol, is taken

    (`X-Forwarded-For`, `X-Forwarded-Proto`)."""

    @property
    def url(self) -> str:
        """The door's address, as somebody on this machine writes it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'http' if self.certificate is None else 'https'}://{host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether it can be reached from this machine alone."""
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Whether a name or an address means this machine and no other."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.casefold() == "localhost"


@dataclass(slots=True)
class Closing:
    """Whether the door is about to close: who waits for something then goes at once."""

    begun: bool = False


@dataclass(frozen=True, slots=True)
class WebContext:
    """Podium, as the routes of this door see it."""

    store: Store
    clock: Clock
    lease: timedelta
    """How long what a silent agent holds stays its own."""
    harness: str
    """The version of the harness that judges here; agents must have the same."""
    package: str
    """The version of Podium, as pip knows it; empty in a checkout."""
    requests_per_minute: int = 0
    """Of one token, or of one address without one; 0: as many as come."""
    closing: Closing = field(default_factory=Closing)
    kept: ResponseCache = field(default_factory=ResponseCache, compare=False)
    """What many readers want at once."""
    written: SharedCache[Any] = field(
        default_factory=lambda: SharedCache(_WRITTEN_MOST), compare=False
    )
    """Long answers, written once for each change of what they tell."""
    comparing: asyncio.Lock = field(default_factory=asyncio.Lock, compare=False)
    """Held by who compares two sources, which takes much of the interpreter."""
    judges: bool = False
    """Whether this process has runners of its own."""
    lines: tuple[ServiceConnection, ...] = ()
    """What other doors of this process are connected to."""
    runners: Sequence[Runner] = ()
    """Where the solutions of new tasks are tried."""
    identities: Identities | None = None
    """Who vouches for people that sign in; None: they sign in by token."""
    links: SignInLinks = field(default_factory=SignInLinks, compare=False)
    """By which the person at the machine may sign in."""
    public_url: str | None = None
    """The door's address as browsers know it, where it was told."""
    prices: Prices = field(default_factory=dict)
    """What a second of each GPU type costs."""
    device_metrics: bool = False
    """Whether a kernel of the evaluation server's is counted by `ncu` where nothing is said."""
    exports: asyncio.Semaphore = field(
        default_factory=lambda: asyncio.Semaphore(EXPORTS), compare=False
    )
    """Whose turn it is to fetch a whole board."""


def is_here(request: Request) -> bool:
    """Whether this door is for its own machine alone, so that who asks sits at it."""
    return bool(getattr(request.app.state, "loopback", False))


def context_of(request: Request) -> WebContext:
    """The door through which a request came."""
    door = request.app.state.door
    if not isinstance(door, WebContext):
        raise TypeError("the application was made without its door")
    return door
