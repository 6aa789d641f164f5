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
from bot.web import compat, routes
from bot.web.connections import IDLE_S, ClientConnection, ClientConnections, Proxies
from bot.web.context import HttpSettings, WebContext, is_loopback
from bot.web.errors import handle_failures
from bot.web.limits import Limiter, RateLimits
from bot.web.middleware import HeadRequests, OwnCookies, RelativeRedirects, RequestIds, Sealing
from runners import plugins

_log = structlog.get_logger(__name__)


class _Application(FastAPI):
    """An application whose responses all have a request id, even the one to a bug."""

    @override
    def build_middleware_stack(self) -> ASGIApp:
        door: WebContext = self.state.door
        inner = RelativeRedirects(super().build_middleware_stack())
        sealed = Sealing(inner, door.public_url, self.state.most_at_once)
        return RequestIds(OwnCookies(sealed))


def build(door: WebContext) -> FastAPI:
    """Return the application with all routes."""
    app = _Application(title="Podium", openapi_url=None)
    app.state.door = door
    app.state.most_at_once = MOST_AT_ONCE
    # The slices come first: otherwise the pages' `/admin/{deed}` would match `/admin/cleanup-jobs`.
    for each in (*slices(), *(plugins.load(routes, name) for name in plugins.names(routes))):
        app.include_router(each.router)
    handle_failures(app)
    if door.requests_per_minute:

        async def find(digest: str) -> Token | None:
            token = await door.store.tokens.find(digest)
            return token if token is not None and token.is_live(door.clock.now()) else None

        app.add_middleware(RateLimits, limiter=Limiter(door.requests_per_minute), find=find)
    app.add_middleware(HeadRequests)
    return app


UPKEEP_EVERY_S = 3600.0


def slices() -> tuple[ModuleType, ...]:
    """Return the `routes` of every slice, by the slice's name."""
    return tuple(
        plugins.load(plugins.load(compat, name), "routes") for name in plugins.names(compat)
    )


@asynccontextmanager
async def maintaining(store: Store, *, every_s: float = UPKEEP_EVERY_S) -> AsyncIterator[None]:
    """Run the upkeep of every slice now and every `every_s` seconds, until left."""
    async with asyncio.TaskGroup() as group:
        running = group.create_task(_maintain(store, every_s), name="slices")
        try:
            yield
        finally:
            running.cancel()


async def _maintain(store: Store, every_s: float) -> None:
    tasks = [each.upkeep for each in slices() if hasattr(each, "upkeep")]
    while True:
        for upkeep in tasks:
            try:
                await upkeep(store)
            except StoreError as error:
                _log.warning("nothing forgotten", action="forget-failed", error=str(error))
        await asyncio.sleep(every_s)


STARTS_S = 10.0
CLOSES_S = 5
"""Seconds that running requests may still take when the server closes."""
MOST_AT_ONCE = 4000
"""The most connections and requests; further ones are asked to retry. A page watcher uses one."""
SPARE = 100
"""This many places are kept free by closing the longest idle connections."""
OTHER_FILES = 512
"""How many files the rest of the process may have open."""
_AT_ONCE = 64
"""How many connections are accepted before other tasks get a turn."""
_AGAIN_S = 1.0
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
        self._connections.hang_up_unmade()
        await super().shutdown(sockets)

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        for number in itertools.count(1):
            try:
                accepted, peer = await loop.sock_accept(listener)
                if self._connections.make_room(peer[0]):
                    self._begin(accepted, peer[0])
                else:
                    accepted.close()
            except OSError as error:  # of a connection that has already ended, or ours
                if error.errno in _EXHAUSTED:
                    _log.warning("nobody can connect", action="no-room", error=str(error))
                    await asyncio.sleep(_AGAIN_S)
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)

    def _begin(self, accepted: socket.socket, address: str) -> None:
        """Make it a connection, which is closed when its handshake takes too long."""
        connection = ClientConnection(
            self._connections,
            address,
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
        )
        limits = {} if self.config.ssl is None else {"ssl_shutdown_timeout": CLOSES_S}
        making = asyncio.get_running_loop().connect_accepted_socket(
            lambda: connection, accepted, ssl=self.config.ssl, **limits
        )
        connection.making = asyncio.create_task(making, name="connection")
        connection.making.add_done_callback(partial(connection.made_or_not, accepted))


@asynccontextmanager
async def serving(door: WebContext, settings: HttpSettings) -> AsyncIterator[str]:
    """Yield the server's address while it runs; SetupError when it cannot listen there."""
    most = _room()
    trusted = [ip_network(each) for each in settings.proxies]
    with _listening(settings) as listener:
        server = _Server(_config(door, settings, most), ClientConnections(most - SPARE, trusted))
        running = asyncio.create_task(server.serve(sockets=[listener]), name="web")
        try:
            await _started(server, running)
            port = listener.getsockname()[1]
            yield HttpSettings(settings.host, port, settings.certificate).url
        finally:
            door.closing.begun = server.should_exit = True
            await asyncio.wait({running}, timeout=2 * CLOSES_S)
            running.cancel()


def _room() -> int:
    """Return how many connections are possible: one file each, up to the machine's limit.

    The usual soft limit is for older programs, so it is raised.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_AT_ONCE + OTHER_FILES
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return max(2 * SPARE, most - OTHER_FILES)


def _config(door: WebContext, settings: HttpSettings, most: int) -> uvicorn.Config:
    app = build(door)
    app.state.most_at_once = most
    app.state.loopback = is_local(door, settings)
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


def is_local(door: WebContext, settings: HttpSettings) -> bool:
    """Return whether all clients are on this machine."""
    return settings.is_loopback and not _is_fronted(door, settings)


def _is_fronted(door: WebContext, settings: HttpSettings) -> bool:
    """Return whether outside clients come through a proxy next to this server."""
    public = urlsplit(door.public_url or "").hostname
    return bool(settings.proxies) or (public is not None and not is_loopback(public))


@contextmanager
def _listening(settings: HttpSettings) -> Iterator[socket.socket]:
    """Yield a bound socket: if uvicorn bound it, a used port would end the process."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # With the TCP protocol given, asyncio sends each response at once; otherwise they wait 40 ms
    # for each other.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((settings.host, settings.port))
        except OSError as error:
            raise SetupError(
                f"the HTTP door cannot listen at {settings.host}:{settings.port}: "
                f"{error.strerror}; choose another PODIUM_HTTP_HOST or PODIUM_HTTP_PORT"
            ) from error
        yield listener


async def _started(server: uvicorn.Server, running: "asyncio.Task[None]") -> None:
    async with asyncio.timeout(STARTS_S):
        while not server.started and not running.done():  # noqa: ASYNC110 - uvicorn has no event
            await asyncio.sleep(0.01)
    if running.done():
        await running
        raise SetupError("the web server ended before it began; its log says why")
