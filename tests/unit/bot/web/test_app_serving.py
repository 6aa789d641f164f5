import asyncio
import signal
import socket
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import pytest

from bot.domain.api.workers import JobNotices
from bot.domain.errors import SetupError, StoreError
from bot.remote.http import Server, connected
from bot.web.app import CLOSES_S, serving
from bot.web.context import HttpSettings
from tests.architecture.tree import ROOT
from tests.doubles.agents import HARNESS, SESSION, make_door, make_token
from tests.doubles.clock import ManualClock
from tests.doubles.memory_store import MemoryStore

HERE = HttpSettings("127.0.0.1", 0)


async def test_the_door_answers_while_it_is_open_and_leaves_signals_alone(
    memory_store: MemoryStore, clock: ManualClock
) -> None:
    usual = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    async with (
        serving(make_door(memory_store, clock), HERE) as url,
        httpx.AsyncClient(base_url=url) as client,
    ):
        assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == usual
        answer = await client.get("/healthz")
        assert answer.status_code == 200
        assert "server" not in answer.headers
    async with httpx.AsyncClient(base_url=url) as client:
        with pytest.raises(httpx.ConnectError):
            await client.get("/healthz")


async def test_only_a_door_to_this_machine_hears_programs_without_a_token(
    memory_store: MemoryStore, clock: ManualClock
) -> None:
    everywhere = HttpSettings("0.0.0.0", 0)  # noqa: S104
    for settings, status in ((HERE, 200), (everywhere, 401)):
        async with serving(make_door(memory_store, clock), settings) as url:
            here = url.replace("0.0.0.0", "127.0.0.1")  # noqa: S104
            async with httpx.AsyncClient(base_url=here) as client:
                assert (await client.get("/eval/stats")).status_code == status


async def test_an_answer_does_not_wait_for_a_full_packet(
    memory_store: MemoryStore, clock: ManualClock
) -> None:
    loop = asyncio.get_running_loop()
    async with (
        serving(make_door(memory_store, clock), HERE) as url,
        httpx.AsyncClient(base_url=url) as client,
    ):
        taken_s = []
        for _ in range(20):
            begun = loop.time()
            await client.post("/api/v1/agents/0123abcd/hello", content=b"{}")
            taken_s.append(loop.time() - begun)
    assert min(taken_s[1:]) < 0.03


async def test_a_port_in_use_is_said_with_what_to_change(
    memory_store: MemoryStore, clock: ManualClock
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        settings = HttpSettings("127.0.0.1", taken.getsockname()[1])
        with pytest.raises(SetupError, match="--port or PODIUM_HTTP_PORT"):
            async with serving(make_door(memory_store, clock), settings):
                pass


async def test_a_certificate_that_is_none_is_said(
    memory_store: MemoryStore, clock: ManualClock, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.write_text("no certificate")
    settings = HttpSettings("127.0.0.1", 0, file, file)
    with pytest.raises(SetupError, match="PODIUM_HTTP_CERTIFICATE"):
        async with serving(make_door(memory_store, clock), settings):
            pass


async def test_a_door_that_closes_does_not_wait_for_those_who_wait(
    memory_store: MemoryStore, clock: ManualClock
) -> None:
    token = await make_token(memory_store, clock)
    begun = asyncio.get_running_loop().time()
    async with AsyncExitStack() as stack:
        async with serving(make_door(memory_store, clock), HERE) as url:
            line = connected(Server(url, token), SESSION, HARNESS)
            connection = await stack.enter_async_context(line)
            query: dict[str, str | float | list[str]] = {"gpu": ["CPU"], "wait_s": 20.0}
            waiting = asyncio.create_task(connection.get("notices", JobNotices, query))
            await asyncio.sleep(0.1)
            assert not waiting.done()
        assert await waiting == JobNotices()
    assert asyncio.get_running_loop().time() - begun < CLOSES_S


async def test_a_certificate_that_this_machine_does_not_trust_gets_no_token(
    memory_store: MemoryStore, clock: ManualClock
) -> None:
    tls = ROOT / "tests" / "doubles" / "tls"
    settings = HttpSettings("127.0.0.1", 0, tls / "certificate.pem", tls / "key.pem")
    async with (
        serving(make_door(memory_store, clock), settings) as url,
        connected(Server(url, "secret"), SESSION, HARNESS) as connection,
    ):
        assert url.startswith("https://")
        with pytest.raises(StoreError, match="certificate cannot be trusted"):
            await connection.send("leave")
