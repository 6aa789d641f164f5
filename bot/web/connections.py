"""Limits how long connections may be silent and how many there are; applies proxy headers.

uvicorn never closes a connection that sends nothing, or half a request. Here every wait for a
client has a deadline, also in the TLS handshake. When connections run out, those that have waited
longest are closed first.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

import h11
import structlog
from starlette.types import ASGIApp, Receive, Scope, Send
from typing_extensions import override
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.protocols.http.h11_impl import RequestResponseCycle

from bot.web.middleware import NOSNIFF, REQUEST_ID, SecurityHeadersProtocol

IDLE_S = 75
"""Seconds between two requests: popcorn-cli polls every 5 s, proxies keep connections a minute."""
HEAD_S = 10.0
"""Seconds for a request's head, from the connection's start or from the head's first byte."""
RECEIVE_S = 75.0
"""Seconds in which a client must read some part of the response being sent."""
PER_ADDRESS = 64
"""The most connections from one address, or from one IPv6 network."""
LOG_EVERY_S = 60.0
"""Seconds between two log lines about refused connections."""

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_TIMEOUT_TEXT = f"the request's head was not complete within {HEAD_S:.0f} s; send it again\n"
_TIMEOUT_RESPONSE = (
    "HTTP/1.1 408 Request Timeout\r\n"
    "Content-Type: text/plain; charset=utf-8\r\n"
    f"{': '.join(NOSNIFF)}\r\n"
    f"Content-Length: {len(_TIMEOUT_TEXT)}\r\n"
    f"Connection: close\r\n\r\n{_TIMEOUT_TEXT}"
).encode()
_log = structlog.get_logger(__name__)


class _Wait(Enum):
    """What the server waits for from a client."""

    HEAD = auto()
    """A request, or the rest of one that was already answered."""
    NEXT = auto()
    """The next request."""
    RECEIVE = auto()
    """The client to read its response."""


_LIMITS_S = {_Wait.HEAD: HEAD_S, _Wait.RECEIVE: RECEIVE_S}
"""By wait; between two requests, uvicorn's own limit applies."""


@dataclass(slots=True)
class ClientConnections:
    """All accepted connections that have not ended."""

    most: int
    """Once there are this many, each new one closes the one that has waited longest."""
    trusted: Sequence[Network] = ()
    """Proxies, which have no limit per address."""
    _by_address: "dict[str, set[ClientConnection]]" = field(default_factory=dict)
    _waiting: "dict[ClientConnection, None]" = field(default_factory=dict)
    """Those that wait for their clients, the longest first."""
    _count: int = 0
    _logged_at: float | None = None

    def admit(self, address: str) -> bool:
        """Return whether to accept a connection from this address; may close another one for it."""
        if self._count >= self.most and self._waiting:
            next(iter(self._waiting)).close()
        same = self._by_address.get(address_group(address), set())
        if len(same) < PER_ADDRESS or _is_in(address, self.trusted):
            return True
        idle = [each for each in same if each.waiting_since is not None]
        if not idle:
            self._log_refusal(address)
            return False
        min(idle, key=lambda each: each.waiting_since or 0.0).close()
        return True

    def add(self, connection: "ClientConnection") -> None:
        """Count an accepted connection."""
        self._count += 1
        self._by_address.setdefault(address_group(connection.address), set()).add(connection)

    def remove(self, connection: "ClientConnection") -> None:
        """Remove an ended connection; calling it again does nothing."""
        group = address_group(connection.address)
        same = self._by_address.get(group, set())
        if connection not in same:
            return
        self._count -= 1
        self._waiting.pop(connection, None)
        same.discard(connection)
        if not same:
            del self._by_address[group]

    def close_handshakes(self) -> None:
        """Close those in their handshake, which uvicorn does not know yet."""
        for connection in list(self._waiting):
            if not connection.is_established:
                connection.close()

    def update(self, connection: "ClientConnection") -> None:
        """Record whether the connection waits for its client."""
        if connection.waiting_since is None:
            self._waiting.pop(connection, None)
        else:
            self._waiting.setdefault(connection)

    def _log_refusal(self, address: str) -> None:
        now = asyncio.get_running_loop().time()
        if self._logged_at is not None and now - self._logged_at < LOG_EVERY_S:
            return
        self._logged_at = now
        message = (
            f"an address has {PER_ADDRESS} connections that are all in use, and gets no more; "
            "name it in PODIUM_HTTP_PROXIES if it is your proxy"
        )
        _log.warning(message, action="connection-refused", address=address)


class ClientConnection(SecurityHeadersProtocol):
    """uvicorn's connection, with a deadline for each wait."""

    def __init__(self, connections: ClientConnections, address: str, **of_uvicorn: Any) -> None:  # noqa: ANN401
        super().__init__(**of_uvicorn)
        self.address = address
        self.handshake: asyncio.Task[object] | None = None
        """The task of the TLS handshake, if there is one."""
        self.is_established = False
        self.waiting_since: float | None = None
        """When the server began to wait for the client; None while a request is being answered."""
        self._connections = connections
        self._wait: _Wait | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._ended = False
        connections.add(self)
        self._update_wait()

    def close(self) -> None:
        """Close it at once; data not yet sent is lost."""
        if self.is_established:
            self.transport.abort()
        elif self.handshake is not None:
            self.handshake.cancel()
        self._end()

    def handshake_ended(self, accepted: socket.socket, task: "asyncio.Task[object]") -> None:
        """Close the connection if its handshake failed."""
        failed = task.cancelled() or task.exception() is not None
        if failed and not self.is_established:
            accepted.close()
            self._end()

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.is_established = True

    @override
    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._update_wait()

    @override
    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._update_wait()

    @override
    def pause_writing(self) -> None:
        super().pause_writing()
        self._update_wait()

    @override
    def resume_writing(self) -> None:
        super().resume_writing()
        self._update_wait()

    @override
    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._update_wait()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        self._end()

    def _update_wait(self) -> None:
        """Set the deadline of the current wait if that changed; sending slowly gains no time."""
        wait = self._current_wait()
        if wait is self._wait or self._ended:
            return
        if self._deadline is not None:
            self._deadline.cancel()
        self._wait, self._deadline = wait, None
        if wait is None:
            self.waiting_since = None
        elif self.waiting_since is None:
            self.waiting_since = self.loop.time()
        if wait in _LIMITS_S:
            self._deadline = self.loop.call_later(_LIMITS_S[wait], self._on_timeout)
        self._connections.update(self)

    def _current_wait(self) -> _Wait | None:
        if not self.is_established:
            return _Wait.HEAD
        if self.transport.is_closing() or self.flow.write_paused:
            return _Wait.RECEIVE
        cycle: RequestResponseCycle | None = vars(self)["cycle"]  # None until the first request
        if cycle is not None and not cycle.response_complete:
            return None
        begun = self.conn.their_state is not h11.IDLE or self.conn.trailing_data[0]
        return _Wait.HEAD if begun or cycle is None else _Wait.NEXT

    def _on_timeout(self) -> None:
        """Close the connection; a client that sent half a head gets the reason."""
        if self._wait is not _Wait.HEAD or not self._has_half_a_head():
            self.close()
            return
        self.transport.write(_TIMEOUT_RESPONSE)
        self.transport.close()
        self._update_wait()

    def _has_half_a_head(self) -> bool:
        return bool(self.conn.trailing_data[0]) and self.conn.our_state is h11.IDLE

    def _end(self) -> None:
        self._ended = True
        if self._deadline is not None:
            self._deadline.cancel()
        self._connections.remove(self)


def address_group(host: str) -> str:
    """Return the addresses that count as one client: for IPv6, a household's whole network."""
    address = _address(host)
    if address is None or address.version == 4:
        return str(address or host)
    return str(ipaddress.ip_network((address, 64), strict=False))


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return an address; a dual-stack socket sees IPv4 mapped into IPv6, which is undone."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _is_in(host: str, networks: Sequence[Network]) -> bool:
    address = _address(host)
    return address is not None and any(address in network for network in networks)


class Proxies:
    """The application, which trusts proxy headers only from these addresses and networks."""

    def __init__(self, app: ASGIApp, proxies: Sequence[str]) -> None:
        self._app = app
        self._proxies = [ipaddress.ip_network(each) for each in proxies]
        trusted = [form for each in proxies for form in _socket_forms(each)]
        self._with_headers = ProxyHeadersMiddleware(app, trusted)  # type: ignore[arg-type]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if _is_in((scope.get("client") or ("", 0))[0], self._proxies):
            await self._with_headers(scope, receive, send)  # type: ignore[arg-type]
            return
        name = REQUEST_ID.lower().encode()
        headers = [each for each in scope.get("headers", ()) if each[0].lower() != name]
        await self._app({**scope, "headers": headers}, receive, send)


def _socket_forms(proxy: str) -> tuple[str, str]:
    """Return an address or network as it is, and as a dual-stack socket sees it."""
    network = ipaddress.ip_network(proxy)
    if network.version == 6:
        return proxy, proxy
    return proxy, f"::ffff:{network.network_address}/{96 + network.prefixlen}"
