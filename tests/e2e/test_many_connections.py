"""Thousands of connections that nobody uses, to a real `podium up`, and newcomers beside them."""

import asyncio
import resource
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress

import httpx
import pytest

from bot.web.app import MOST_AT_ONCE, OTHER_FILES
from bot.web.connections import PER_ADDRESS
from tests.e2e.command import fresh, served_at

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

HELD = MOST_AT_ONCE + 100
AT_ONCE = 100
SAID = (b"", b"GET /healthz HTT", b"GET /healthz HTTP/1.1\r\nHost: podium.test\r\n\r\n")
"""Nothing; half a head; a whole request, after whose answer the connection is idle."""


@pytest.fixture
def _many_files() -> Iterator[None]:
    """This process may have as many files open as it needs."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = HELD + OTHER_FILES
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip(f"{wanted} open files are needed; the hard limit is {hard} (ulimit -Hn)")
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def port() -> Iterator[int]:
    with fresh() as podium, served_at(podium) as url:
        yield int(url.rpartition(":")[2])


@asynccontextmanager
async def held(port: int) -> AsyncIterator[list[asyncio.StreamReader]]:
    """The connections, from as many addresses as they need."""
    found: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def hold(number: int) -> None:
        here = (f"127.0.{1 + number // PER_ADDRESS}.1", 0)
        reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=here)
        found.append((reader, writer))
        writer.write(SAID[number % 3])
        if number % 3 == 2:
            await reader.readuntil(b"}")

    try:
        for first in range(0, HELD, AT_ONCE):
            await asyncio.gather(*(hold(number) for number in range(first, first + AT_ONCE)))
        yield [reader for reader, _ in found]
    finally:
        for _, writer in found:
            writer.transport.abort()
        for _, writer in found:
            with suppress(OSError):
                await writer.wait_closed()


@pytest.mark.usefixtures("_many_files")
async def test_a_newcomer_is_served_beside_4100_idle_and_half_open_connections(port: int) -> None:
    assert HELD == 4100
    async with held(port) as readers:
        assert len(readers) == HELD
        for _ in range(3):
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as newcomer:
                assert (await newcomer.get("/healthz", timeout=10)).status_code == 200
        # Idle ones went in the order in which they had come, and no more than had to. Those which
        # had said nothing or half a head have a deadline too, which a busy machine may reach.
        ended = [number for number, reader in enumerate(readers) if reader.at_eof()]
        idle = [number for number in ended if number % 3 == 2]
        assert len(idle) < HELD // 12
        assert max(idle, default=0) < HELD // 2
