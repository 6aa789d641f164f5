"""Keeps the door open: one HTTP server in the loop that everything else runs in."""

import asyncio
import resource
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from ipaddress import ip_network
from urllib.parse import urlsplit

import uvicorn
from typing_extensions import override

from bot.domain.errors import SetupError
from bot.frontends.web.app import build
from bot.frontends.web.door import Door, DoorSettings, is_loopback

STARTS_S = 10.0
CLOSES_S = 5
"""What requests under way may still take once the door closes."""
MOST_AT_ONCE = 4000
"""Connections and requests; who comes then is asked to come again. A watcher of a page has one."""
OTHER_FILES = 512
"""What the rest of the process may have open beside them."""


class _Server(uvicorn.Server):
    """A server that leaves signals to the process whose guest it is."""

    @contextmanager
    @override
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def serving(door: Door, settings: DoorSettings) -> AsyncIterator[str]:
    """The open door's address; SetupError when it cannot listen there."""
    _make_room()
    with _listening(settings) as listener:
        server = _Server(_config(door, settings))
        running = asyncio.create_task(server.serve(sockets=[listener]), name="web")
        try:
            await _started(server, running)
            port = listener.getsockname()[1]
            yield DoorSettings(settings.host, port, settings.certificate).url
        finally:
            door.closing.begun = server.should_exit = True
            await asyncio.wait({running}, timeout=2 * CLOSES_S)
            running.cancel()


def _make_room() -> None:
    """Let the process have a file for each connection: the usual limit is for older programs."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_AT_ONCE + OTHER_FILES
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _config(door: Door, settings: DoorSettings) -> uvicorn.Config:
    app = build(door)
    app.state.loopback = settings.is_loopback and not _is_fronted(door, settings)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        http="h11",
        proxy_headers=bool(settings.proxies),
        forwarded_allow_ips=[word for each in settings.proxies for word in _spellings(each)],
        server_header=False,
        limit_concurrency=MOST_AT_ONCE,
        timeout_graceful_shutdown=CLOSES_S,
        ssl_certfile=settings.certificate,
        ssl_keyfile=settings.key,
    )
    try:
        config.load()
    except OSError as error:  # ssl.SSLError is one
        raise SetupError(
            f"the certificate {settings.certificate} with the key {settings.key} cannot be used: "
            f"{error.strerror or error}; see PODIUM_HTTP_CERTIFICATE and PODIUM_HTTP_KEY"
        ) from error
    return config


def _is_fronted(door: Door, settings: DoorSettings) -> bool:
    """Whether strangers come through a proxy beside the door, be its own address as it may."""
    public = urlsplit(door.public_url or "").hostname
    return bool(settings.proxies) or (public is not None and not is_loopback(public))


def _spellings(proxy: str) -> tuple[str, str]:
    """An address or network as it is, and as a door to IPv4 and IPv6 alike sees it."""
    network = ip_network(proxy)
    if network.version == 6:
        return proxy, proxy
    return proxy, f"::ffff:{network.network_address}/{96 + network.prefixlen}"


@contextmanager
def _listening(settings: DoorSettings) -> Iterator[socket.socket]:
    """A bound socket: bound by uvicorn, a port in use would end the process."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # Told that it is TCP, asyncio sends each answer at once; else they wait 40 ms for each other.
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
