import asyncio
import time

import aiohttp
import discord
import pytest

from bot.discord import requests
from bot.discord.requests import REQUESTS_PER_S, RequestSpacer
from bot.discord.responses import is_temporary
from tests.doubles.discord.limits import CHANNEL, FOLLOWUPS
from tests.doubles.discord.rest.faults import Fault
from tests.doubles.discord_room import room


async def test_no_second_has_more_turns_than_allowed() -> None:
    spacing, times = RequestSpacer(most=5), []
    for _ in range(12):
        async with spacing.slot():
            times.append(time.monotonic())
    assert min(later - one for one, later in zip(times, times[5:], strict=False)) >= 0.99
    assert times[4] - times[0] < 0.5


async def test_of_one_key_one_at_a_time_has_its_turn() -> None:
    spacing, inside = RequestSpacer(), []

    async def take(key: str) -> None:
        async with spacing.slot(key):
            inside.append(key)
            assert inside.count("a") <= 1
            await asyncio.sleep(0.05)
            inside.remove(key)

    begin = time.monotonic()
    await asyncio.gather(take("a"), take("a"), take("b"))
    assert 0.1 <= time.monotonic() - begin < 0.14
    assert not spacing.locks


async def test_a_crowd_in_one_channel_is_never_refused() -> None:
    """discord.py alone is: it overfills a window that begins while answers are under way."""
    async with room(scale=0.2) as here:
        here.server.rest.latency = 0.1
        channel = here.client.get_partial_messageable(here.channel.id)

        async def write(number: int) -> None:
            await asyncio.sleep(0.13 * number)
            for _ in range(3):
                await channel.send(str(number))

        await asyncio.gather(*map(write, range(12)))
        assert len(here.channel.messages) == 36
        here.server.assert_clean()


async def test_the_limit_of_all_requests_together_is_kept() -> None:
    async with room(scale=0.001) as here:
        here.server.rates.rates.routes["GET", CHANNEL] = (10 * REQUESTS_PER_S, 5.0)
        begin = time.monotonic()
        await asyncio.gather(
            *(here.client.fetch_channel(here.channel.id) for _ in range(REQUESTS_PER_S + 20))
        )
        assert time.monotonic() - begin >= 0.9
        here.server.assert_clean()


async def test_silence_ends_a_request_and_is_taken_for_a_passing_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(requests, "RESPONSE_TIMEOUT_S", 0.2)
    async with room() as here:
        with here.server.faults.during(Fault(status=None)):
            with pytest.raises((aiohttp.ClientError, TimeoutError)) as caught:
                await asyncio.wait_for(here.client.fetch_channel(here.channel.id), 5)
            assert is_temporary(caught.value)
        assert (await here.client.fetch_channel(here.channel.id)).id == here.channel.id


async def test_a_follow_up_without_a_response_is_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "RESPONSE_TIMEOUT_S", 0.2)
    async with room() as here:
        answer = discord.Webhook.partial(
            here.client.application_id or 0, "of-an-interaction", client=here.client
        )
        with here.server.faults.during(Fault("POST", FOLLOWUPS, status=None)):
            begin = time.monotonic()
            with pytest.raises(TimeoutError) as raised:
                await answer.send("hello")
        assert time.monotonic() - begin < 2
        assert is_temporary(raised.value)
