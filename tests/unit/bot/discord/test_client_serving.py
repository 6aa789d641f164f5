import asyncio
import socket

import discord
import pytest
import structlog

from bot.discord import client
from bot.discord.client import serve
from bot.discord.context import DiscordContext, DiscordSettings
from bot.domain.errors import SetupError
from tests.doubles.clock import ManualClock
from tests.doubles.discord.limits import Rates
from tests.doubles.discord.rest.faults import Fault
from tests.doubles.discord.server import LocalDiscord
from tests.doubles.memory_store import MemoryStore


def context() -> DiscordContext:
    clock = ManualClock()
    return DiscordContext(MemoryStore(clock), clock)


def settings(server: LocalDiscord, token: str | None = None) -> DiscordSettings:
    return DiscordSettings(token or server.token, server.api_base, server.gateway_url)


async def test_a_wrong_token_is_told_at_once() -> None:
    async with LocalDiscord() as server:
        wrong = settings(server, "MQ.x.y")
        with pytest.raises(SetupError, match="copy it again"):
            await asyncio.wait_for(serve(context(), wrong, asyncio.Event()), 10)


async def test_a_discord_that_is_away_is_asked_until_it_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client, "FIRST_WAIT_S", 0.05)
    stop = asyncio.Event()
    async with LocalDiscord(rates=Rates(0)) as server:
        server.guild("gpu").create_channel("submissions")
        with server.faults.during(Fault(status=503)) as fault:
            task = asyncio.create_task(serve(context(), settings(server), stop))
            await server.wait_for(lambda: fault.hits >= 3, 10)
        await server.wait_for(lambda: server.gateway.connected, 10)
        stop.set()
        await asyncio.wait_for(task, 10)
        server.assert_clean()


async def test_a_host_that_does_not_answer_is_logged_in_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client, "FIRST_WAIT_S", 0.01)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    away = DiscordSettings("MQ.x.y", f"http://127.0.0.1:{port}")
    stop = asyncio.Event()
    with structlog.testing.capture_logs() as logs:
        task = asyncio.create_task(serve(context(), away, stop))
        async with asyncio.timeout(20):
            while not logs:  # noqa: ASYNC110 - the log has no event
                await asyncio.sleep(0.01)
        stop.set()
        await asyncio.wait_for(task, 20)
    assert logs[0]["error"].startswith(f"Cannot connect to host 127.0.0.1:{port} ")


def test_the_longest_wait_for_the_gateway_is_half_a_minute() -> None:
    delays = discord.client.ExponentialBackoff()  # type: ignore[attr-defined]
    assert max(delays.delay() for _ in range(2000)) <= 32
