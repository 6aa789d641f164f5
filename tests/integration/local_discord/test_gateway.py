"""Connections that break, sessions that come back, bots that may not log in."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from tests.architecture.tree import ROOT
from tests.doubles.discord.gateway.sessions import Session
from tests.doubles.discord.kinds import Intent
from tests.doubles.discord.limits import Limits
from tests.doubles.discord.server import LocalDiscord
from tests.integration.local_discord.stage import BOT, Played, Stage, played, times_out, with_bot

RECONNECTS_WITHIN_S = 30.0


@pytest.fixture
async def fresh(tmp_path: Path) -> AsyncIterator[Played]:
    """A stage and a bot of this test's own."""
    async with played(tmp_path / "bot.log") as play:
        yield play


def only(server: LocalDiscord) -> Session:
    (session,) = server.world.sessions.values()
    return session


async def answers(play: Played) -> None:
    assert (await play.stage.alice.slash("leaderboard show")).message.embeds


@pytest.mark.parametrize("how", ["drop", "close", "reconnect"])
@pytest.mark.slow
async def test_a_session_is_resumed_with_what_was_missed(fresh: Played, how: str) -> None:
    gateway, before = fresh.server.gateway, only(fresh.server)
    {"drop": gateway.drop, "close": gateway.close, "reconnect": gateway.reconnect}[how]()
    if how != "reconnect":
        await fresh.server.wait_for(lambda: before.socket is None)
    await answers(fresh)
    assert only(fresh.server) is before
    assert before.resumes == 1
    assert gateway.identifies == 1
    fresh.server.assert_clean()


@pytest.mark.parametrize("how", ["invalidate", "forget"])
@pytest.mark.slow
async def test_a_lost_session_begins_anew(fresh: Played, how: str) -> None:
    server, gateway = fresh.server, fresh.server.gateway
    if how == "invalidate":
        gateway.invalidate()
    else:
        gateway.drop()
        gateway.forget()
    assert await server.wait_for(lambda: gateway.identifies == 2 and gateway.connected, 15)
    await answers(fresh)


@pytest.mark.slow
async def test_an_outage_ends(fresh: Played) -> None:
    server, gateway = fresh.server, fresh.server.gateway
    gateway.refuses = True
    gateway.drop()
    await server.wait_for(lambda: not gateway.connected)
    await times_out(server, answers(fresh))
    gateway.refuses = False
    assert await server.wait_for(lambda: gateway.connected, RECONNECTS_WITHIN_S)
    await answers(fresh)


@pytest.mark.slow
async def test_a_killed_bot_comes_back(fresh: Played) -> None:
    """What it deferred still says "thinking...", its commands keep their ids, one button lives."""
    server, alice = fresh.server, fresh.stage.alice
    ids = {command["name"]: command["id"] for command in server.commands}
    shown = await alice.slash("leaderboard show")
    last = await alice.slash("leaderboard last", number=7)
    deferred = await alice.slash("leaderboard slow")
    await fresh.bot.stop(signal.SIGKILL)
    assert deferred.message.loading
    await fresh.bot.start()
    assert (await alice.click(last.message, "Again")).message.content == "again 7"
    assert ids == {command["name"]: command["id"] for command in server.commands}
    assert len(server.syncs) == 2
    await times_out(server, alice.click(shown.message, "Next"))


@pytest.mark.slow
async def test_of_two_copies_one_answer_is_refused(fresh: Played, tmp_path: Path) -> None:
    server = fresh.server
    async with with_bot(fresh.stage, tmp_path / "second.log"):
        await server.wait_for(lambda: len(server.gateway.connected) == 2)
        await server.wait_for(lambda: len(server.syncs) == 2)
        await answers(fresh)
        await server.wait_for(lambda: server.refused)
    assert [record.code for record in server.refused] == [40060]
    server.assert_clean(allowing=[40060])


@pytest.mark.slow
async def test_what_is_told_again_reaches_the_bot_again(fresh: Played) -> None:
    shown = await fresh.stage.alice.slash("leaderboard show")
    shown.repeat()
    await fresh.server.wait_for(lambda: fresh.server.refused)
    assert [record.code for record in fresh.server.refused] == [40060]
    fresh.server.assert_clean(allowing=[40060])


@pytest.mark.parametrize(
    ("granted", "token", "error"),
    [(True, "wrong", "LoginFailure"), (False, "", "PrivilegedIntentsRequired")],
)
@pytest.mark.slow
async def test_a_bot_that_may_not_log_in_ends(
    tmp_path: Path, *, granted: bool, token: str, error: str
) -> None:
    async with LocalDiscord(privileged_intents=granted) as server:
        Stage(server)
        environment = {"PYTHONPATH": str(ROOT)} | ({"DISCORD_TOKEN": token} if token else {})
        log = tmp_path / "bot.log"
        with pytest.raises(RuntimeError, match=error):
            async with server.spawn(BOT, log, environment=environment):
                pass
        assert server.gateway.closes == ([] if granted else [4014])


async def close_code(server: LocalDiscord, *payloads: object) -> int | None:
    """Say all this to the gateway, and wait until it closes."""
    async with aiohttp.ClientSession() as http, http.ws_connect(server.gateway_url) as socket:
        assert (await socket.receive_json())["op"] == 10
        for payload in payloads:
            await socket.send_str(payload if isinstance(payload, str) else json.dumps(payload))
        async for _ in socket:
            pass
        return socket.close_code


async def test_a_broken_protocol_closes_the_socket() -> None:
    limits = Limits(heartbeat_interval=0.2, gateway_sends=20)
    async with LocalDiscord(limits=limits) as server:
        identify = {"op": 2, "d": {"token": server.token, "intents": 513}}
        cases: list[tuple[int, list[object]]] = [
            (4001, [identify, {"op": 99, "d": {}}]),
            (4002, ["garbage"]),
            (4003, [{"op": 8, "d": {}}]),
            (4004, [{"op": 2, "d": {"token": "x", "intents": 1}}]),
            (4004, [{"op": 6, "d": {"token": "x", "session_id": "y", "seq": 1}}]),
            (4005, [identify, identify]),
            (4008, [{"op": 1, "d": None}] * 21),
            (4009, [identify]),
            (4013, [{"op": 2, "d": {"token": server.token, "intents": "all"}}]),
        ]
        for code, payloads in cases:
            assert await close_code(server, *payloads) == code
        assert server.gateway.closes == [code for code, _ in cases]
        with pytest.raises(AssertionError, match="the gateway closed with 4001"):
            server.assert_clean()


async def test_resuming_an_unknown_session_is_invalid() -> None:
    async with LocalDiscord() as server:
        data = {"token": server.token, "session_id": "gone", "seq": 5}
        async with aiohttp.ClientSession() as http, http.ws_connect(server.gateway_url) as socket:
            await socket.receive_json()
            await socket.send_json({"op": 6, "d": data})
            answer = await socket.receive_json()
        assert (answer["op"], answer["d"]) == (9, False)


@pytest.mark.parametrize(
    ("intent", "read"), [(Intent.GUILD_MESSAGES, ""), (Intent.MESSAGE_CONTENT, "hello")]
)
async def test_what_people_write_is_read_only_with_the_intent(intent: Intent, read: str) -> None:
    intents = Intent.GUILDS | Intent.GUILD_MESSAGES | intent
    async with LocalDiscord() as server, aiohttp.ClientSession() as http:
        stage = Stage(server)
        async with http.ws_connect(server.gateway_url) as socket:
            data = {"token": server.token, "intents": int(intents)}
            await socket.send_json({"op": 2, "d": data})
            while (await socket.receive_json())["t"] != "GUILD_CREATE":
                pass
            await stage.alice.send("hello")
            event = await asyncio.wait_for(socket.receive_json(), 2)
            assert event["t"] == "MESSAGE_CREATE"
            assert event["d"]["content"] == read
