"""Rate limits: the headers, the scopes, and how discord.py keeps to them."""

import asyncio
import time
from pathlib import Path

import pytest

from tests.doubles.discord.limits import MESSAGES, Limits, Rates
from tests.doubles.discord.rest.faults import Fault
from tests.doubles.discord.server import LocalDiscord
from tests.integration.local_discord.stage import Stage, by_hand, with_bot


async def test_a_window_is_announced_and_then_kept() -> None:
    async with by_hand(scale=1) as hand:
        answers = [await hand.say(content="x") for _ in range(6)]
        assert [answer.status for answer in answers] == [200] * 5 + [429]
        left = [answer.headers["X-RateLimit-Remaining"] for answer in answers]
        assert left == ["4", "3", "2", "1", "0", "0"]
        refused = answers[-1]
        assert refused.headers["X-RateLimit-Scope"] == "user"
        assert refused.headers["Via"]
        assert 4 < refused.body["retry_after"] <= 5
        assert not refused.body["global"]
        assert (await hand.say(hand.stage.public, content="x")).status == 200
        hand.server.clock.advance(5)
        assert (await hand.say(content="x")).status == 200
        assert [record.status for record in hand.server.refused] == [429]


async def test_a_channel_is_renamed_twice_in_ten_minutes() -> None:
    async with by_hand(scale=1) as hand:
        path = f"/channels/{hand.stage.lab.id}"
        answers = [await hand("PATCH", path, {"name": f"n{i}"}) for i in range(3)]
        assert [answer.status for answer in answers] == [200, 200, 429]
        assert answers[-1].headers["X-RateLimit-Scope"] == "shared"
        assert answers[-1].body["retry_after"] > 590
        assert (await hand("PATCH", path, {"topic": "t"})).status == 200


async def test_all_routes_together_have_a_limit() -> None:
    async with by_hand(scale=1) as hand:
        guild = hand.stage.guild.id
        paths = ["/users/@me", "/gateway", f"/guilds/{guild}/roles", f"/guilds/{guild}/channels"]
        answers = await asyncio.gather(*(hand("GET", path) for path in paths * 15))
        refused = [answer for answer in answers if answer.status == 429]
        assert len(refused) == 10
        assert all(answer.headers["X-RateLimit-Global"] == "true" for answer in refused)
        assert all(answer.body["global"] for answer in refused)


@pytest.mark.slow
async def test_discord_py_keeps_to_the_headers(tmp_path: Path) -> None:
    """17 messages at 5 a second take three windows, and none is refused."""
    server = LocalDiscord(rates=Rates(0.2))
    async with server, with_bot(Stage(server), tmp_path / "bot.log") as play:
        begin = time.monotonic()
        run = await play.stage.alice.slash("rules burst", count=17)
        await play.stage.alice.sees("burst over", within=15)
        assert time.monotonic() - begin >= 2.5
        assert run.message.content == "burst over"
        assert len(play.stage.lab.messages) == 18
        server.assert_clean()
        server.forget()
        await _survives_failures(server, play.stage)
        assert "We are being rate limited" in play.bot.log


async def _survives_failures(server: LocalDiscord, stage: Stage) -> None:
    """Two refusals and a server error are tried again by discord.py itself."""
    server.faults.add(Fault("POST", MESSAGES, 429, count=2, retry_after=0.3))
    server.faults.add(Fault("POST", MESSAGES, 502, count=1))
    run = await stage.alice.slash("rules burst", count=3)
    await server.wait_for(lambda: run.message.content == "burst over", 20)
    injected = [record.status for record in server.requests if record.injected]
    assert sorted(injected) == [429, 429, 502]
    server.assert_clean()


async def test_a_limit_may_be_lowered_to_reach_it() -> None:
    async with LocalDiscord(limits=Limits(content=10)) as server:
        assert server.world.limits.content == 10
