"""The web application with all its routes and slices, and the server that runs it.

A slice is the API of another system: a folder of `compat` that no other module imports. It has a
module `routes` with its `router`. That module may have a function `upkeep`, which takes the store
and is called once an hour.
"""

import asyncio
import errno
import itertools
import resource
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from ipaddress import ip_network
from types import ModuleType
from urllib.parse import urlsplit

import structlog
import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp
from typing_extensions import override

from bot.domain.accounts import Token
from bot.domain.errors import SetupError, StoreError
from bot.ports import Store
from bot.web import compat, errors, middleware, routes
from bot.web.connections import IDLE_S, ClientConnection, ClientConnections, Proxies
from bot.web.context import HttpSettings, WebContext, is_loopback
from bot.web.limits import Limiter, RateLimits
from runners import plugins

_log = structlog.get_logger(__name__)


class _Application(FastAPI):
    """An application whose responses all have a request id, also after an unexpected error."""

    @override
    def build_middleware_stack(self) -> ASGIApp:
        context: WebContext = self.state.context
        inner = super().build_middleware_stack()
        secured = middleware.SecurityHeaders(inner, context.public_url, self.state.most_at_once)
        return middleware.RequestIds(middleware.OwnCookies(secured))


def build(context: WebContext) -> FastAPI:
    """Return the application with all routes."""
    app = _Application(title="Podium", openapi_url=None, redirect_slashes=False)
    app.state.context = context
    app.state.most_at_once = MOST_AT_ONCE
    for module in in_order_of_matching():
        app.include_router(module.router)
    errors.add_error_handlers(app)
    if context.requests_per_minute:

        async def find_live_token(digest: str) -> Token | None:
            token = await context.store.tokens.find(digest)
            return token if token is not None and token.is_live(context.clock.now()) else None

        app.add_middleware(
            RateLimits, limiter=Limiter(context.requests_per_minute), find=find_live_token
        )
    app.add_middleware(middleware.HeadRequests)
    return app


def in_order_of_matching() -> Iterator[ModuleType]:
    """Yield the modules with routes: each request is compared with one after the other.

    The pages come first, as most requests are for them, and all others take half a millisecond.
    The slices come before the forms, whose `/admin/{action}` matches `/admin/cleanup-jobs` too.
    """
    folders = {name: plugins.load(routes, name) for name in plugins.names(routes)}
    yield from (folders.pop("pages"), *slices(), *folders.values())


UPKEEP_EVERY_S = 3600.0


def slices() -> tuple[ModuleType, ...]:
    """Return the module `routes` of every slice, sorted by name."""
    return tuple(
        plugins.load(plugins.load(compat, name), "routes") for name in plugins.names(compat)
    )


@asynccontextmanager
async def maintaining(store: Store, *, every_s: float = UPKEEP_EVERY_S) -> AsyncIterator[None]:
    """Run the upkeep of every slice now and every `every_s` seconds, until the block ends."""
    async with asyncio.TaskGroup() as group:
        task = group.create_task(_run_upkeep(store, every_s), name="slices")
        try:
            yield
        finally:
            task.cancel()


async def _run_upkeep(store: Store, every_s: float) -> None:
    upkeeps = [each.upkeep for each in slices() if hasattr(each, "upkeep")]
    while True:
        for upkeep in upkeeps:
            try:
                await upkeep(store)
            except StoreError as error:
                _log.warning("upkeep of a slice failed", action="forget-failed", error=str(error))
        await asyncio.sleep(every_s)


START_TIMEOUT_S = 10.0
CLOSES_S = 5
"""Seconds that running requests may still take when the server closes."""
MOST_AT_ONCE = 4000
"""The most connections and concurrent requests; an open live page uses one of each.

Further requests are told to retry.
"""
SPARE = 100
"""How many connections are kept free by closing the longest idle ones."""
OTHER_FILES = 512
"""How many files the process may have open in addition to connections."""
_ACCEPTS_PER_TURN = 64
"""How many connections are accepted before other tasks get a turn."""
_RETRY_S = 1.0
_EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


class _Server(uvicorn.Server):
    """A server that leaves signal handling to the process it runs in.

    It accepts connections itself: asyncio reports a TLS connection only after its handshake, so a
    client that never starts one would not be counted.
    """

    def __init__(self, config: uvicorn.Config, connections: ClientConnections) -> None:
        super().__init__(config)
        self._connections = connections
        self._accepting: list[asyncio.Task[None]] = []

    @contextmanager
    @override
    def capture_signals(self) -> Iterator[None]:
        yield

    @override
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self.servers = []
        for listener in sockets or ():
            listener.listen(self.config.backlog)
            listener.settimeout(0)
            self._accepting.append(asyncio.create_task(self._accept(listener), name="accept"))
        self.started = True

    @override
    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for task in self._accepting:
            task.cancel()
        await asyncio.wait(self._accepting)
        self._connections.close_handshakes()
        await super().shutdown(sockets)

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        for number in itertools.count(1):
            try:
                accepted, peer = await loop.sock_accept(listener)
                if self._connections.admit(peer[0]):
                    self._start_connection(accepted, peer[0])
                else:
                    accepted.close()
            except OSError as error:  # the client has disconnected, or no file is left
                if error.errno in _EXHAUSTED:
                    message = "no connection can be accepted"
                    _log.warning(message, action="no-room", error=str(error))
                    await asyncio.sleep(_RETRY_S)
            if number % _ACCEPTS_PER_TURN == 0:
                await asyncio.sleep(0)

    def _start_connection(self, accepted: socket.socket, address: str) -> None:
        """Start a connection, which is closed when its handshake takes too long."""
        connection = ClientConnection(
            self._connections,
            address,
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
        )
        limits = {} if self.config.ssl is None else {"ssl_shutdown_timeout": CLOSES_S}
        handshake = asyncio.get_running_loop().connect_accepted_socket(
            lambda: connection, accepted, ssl=self.config.ssl, **limits
        )
        connection.handshake = asyncio.create_task(handshake, name="connection")
        connection.handshake.add_done_callback(partial(connection.handshake_ended, accepted))


@asynccontextmanager
async def serving(context: WebContext, settings: HttpSettings) -> AsyncIterator[str]:
    """Yield the server's address while it runs; SetupError when it cannot listen there."""
    most = _connection_limit()
    trusted = [ip_network(each) for each in settings.proxies]
    with _listening_socket(settings) as listener:
        server = _Server(_config(context, settings, most), ClientConnections(most - SPARE, trusted))
        running = asyncio.create_task(server.serve(sockets=[listener]), name="web")
        try:
            await _wait_started(server, running)
            port = listener.getsockname()[1]
            yield HttpSettings(settings.host, port, settings.certificate).url
        finally:
            context.closing.begun = server.should_exit = True
            await asyncio.wait({running}, timeout=2 * CLOSES_S)
            running.cancel()


def _connection_limit() -> int:
    """Return how many connections are possible: one file each, up to the machine's limit.

    The usual soft limit is for older programs, so it is raised.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = MOST_AT_ONCE + OTHER_FILES
    most = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return max(2 * SPARE, most - OTHER_FILES)


def _config(context: WebContext, settings: HttpSettings, most: int) -> uvicorn.Config:
    app = build(context)
    app.state.most_at_once = most
    app.state.loopback = is_local(context, settings)
    config = uvicorn.Config(
        Proxies(app, settings.proxies),
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        http=ClientConnection,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=IDLE_S,
        timeout_graceful_shutdown=CLOSES_S,
        ssl_certfile=settings.certificate,
        ssl_keyfile=settings.key,
    )
    try:
        config.load()
    except OSError as error:  # includes ssl.SSLError
        raise SetupError(
            f"the certificate {settings.certificate} with the key {settings.key} cannot be used: "
            f"{error.strerror or error}; see PODIUM_HTTP_CERTIFICATE and PODIUM_HTTP_KEY"
        ) from error
    return config


def is_local(context: WebContext, settings: HttpSettings) -> bool:
    """Return whether all clients are on this machine; a proxy may pass on requests of others."""
    public = urlsplit(context.public_url or "").hostname
    is_public = public is not None and not is_loopback(public)
    return settings.is_loopback and not settings.proxies and not is_public


@contextmanager
def _listening_socket(settings: HttpSettings) -> Iterator[socket.socket]:
    """Yield a bound socket; uvicorn would exit the process if the port were in use."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # asyncio sets TCP_NODELAY only if the socket names its protocol; otherwise a response may be
    # delayed by 40 ms.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((settings.host, settings.port))
        except OSError as error:
            raise SetupError(
                f"the web server cannot listen at {settings.host}:{settings.port}: "
                f"{error.strerror}; choose another port by --port or PODIUM_HTTP_PORT"
            ) from error
        yield listener


async def _wait_started(server: uvicorn.Server, running: "asyncio.Task[None]") -> None:
    async with asyncio.timeout(START_TIMEOUT_S):
        while not server.started and not running.done():  # noqa: ASYNC110 - uvicorn has no event
            await asyncio.sleep(0.01)
    if running.done():
        await running
        raise SetupError("the web server ended before it started; see its log")
