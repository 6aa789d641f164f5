"""What every route receives: the store, the clock, and the server's settings."""

import asyncio
import ipaddress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from fastapi import Request

from bot.ports import Clock, IdentityProvider, Store
from bot.ports.outside import ServiceConnection
from bot.services.cache import ResponseCache, SharedCache
from bot.services.tokens import SignInLinks

FRONT_END = "web"
STREAM_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
"""Headers of a response that is sent in parts; nginx must not buffer it."""
EXPORTS = 2
"""The most boards that are exported at the same time."""
ARCHIVE_ZIP_BYTES = 64 << 20
"""The largest zip of a board archive."""
_MOST_LONG_RESPONSES = 32
"""The most long responses in the cache; each may be some hundred kilobytes."""


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """Where the server listens; with a certificate and key it serves HTTPS itself."""

    host: str
    port: int
    certificate: Path | None = None
    key: Path | None = None
    proxies: tuple[str, ...] = ()
    """Addresses and networks whose `X-Forwarded-For` and `X-Forwarded-Proto` are trusted."""

    @property
    def url(self) -> str:
        """Return the server's URL for clients on this machine."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'http' if self.certificate is None else 'https'}://{host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Return whether it can be reached only from this machine."""
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Return whether a name or an address means only this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.casefold() == "localhost"


@dataclass(slots=True)
class Closing:
    """Whether the server is closing, so that waiting requests end at once."""

    begun: bool = False


@dataclass(frozen=True, slots=True)
class WebContext:
    """Podium as this server's routes see it."""

    store: Store
    clock: Clock
    lease: timedelta
    """How long a remote worker keeps its jobs without a heartbeat."""
    harness: str
    """The version of the harness here; remote workers must have the same."""
    package: str
    """Podium's version as pip reports it; empty in a checkout."""
    requests_per_minute: int = 0
    """Per token, or per address without one; 0: no limit."""
    closing: Closing = field(default_factory=Closing)
    cache: ResponseCache = field(default_factory=ResponseCache, compare=False)
    """Values that many readers request at once."""
    long_responses: SharedCache[Any] = field(
        default_factory=lambda: SharedCache(_MOST_LONG_RESPONSES), compare=False
    )
    """Long responses, written once per change of their data."""
    comparison_lock: asyncio.Lock = field(default_factory=asyncio.Lock, compare=False)
    """Held while two sources are compared, which keeps the interpreter busy."""
    has_runners: bool = False
    """Whether this process has runners of its own."""
    connections: tuple[ServiceConnection, ...] = ()
    """The connections of this process's other front ends."""
    identities: IdentityProvider | None = None
    """Confirms the identity of people who sign in; None: they sign in by token."""
    sign_in_links: SignInLinks = field(default_factory=SignInLinks, compare=False)
    """For signing in from this machine."""
    public_url: str | None = None
    """The server's public URL, if configured."""
    confirm_places: bool = True
    """Whether runs for the first places are held back until they are compared."""
    device_metrics: bool = False
    """Whether the evaluation server counts with `ncu` if a request does not say."""
    export_slots: asyncio.Semaphore = field(
        default_factory=lambda: asyncio.Semaphore(EXPORTS), compare=False
    )
    """Limits the concurrent exports."""


def is_here(request: Request) -> bool:
    """Return whether only this machine can connect, so that the caller is its user."""
    return bool(getattr(request.app.state, "loopback", False))


def page_of(request: Request) -> str:
    """Return the path and query of the page that sent the request, to which a sign-in returns."""
    if request.method not in {"GET", "HEAD"}:  # the address of a form has no page
        try:
            sender = urlsplit(request.headers.get("Referer", ""))
        except ValueError:
            return "/"
        return sender._replace(scheme="", netloc="").geturl() or "/"
    path, query = quote(request.scope["path"]), request.scope["query_string"].decode("latin-1")
    return f"{path}?{query}" if query else path


def address_of(request: Request) -> str:
    """Return the public address, else the one that was connected to; never the `Host` header."""
    public = context_of(request).public_url
    if public is not None:
        return public
    host, port = request.scope.get("server") or ("127.0.0.1", None)
    name = f"[{host}]" if ":" in host else host
    return f"{request.url.scheme}://{name}" + (f":{port}" if port else "")


def context_of(request: Request) -> WebContext:
    """Return the context of a request's application."""
    context = request.app.state.context
    if not isinstance(context, WebContext):
        raise TypeError("the application has no WebContext")
    return context
