"""Failures on purpose: they come while a test wants them, and are not the bot's fault."""

import asyncio

import aiohttp
import pytest

from tests.doubles.discord.limits import MESSAGES
from tests.doubles.discord.rest.faults import Fault
from tests.integration.local_discord.stage import ByHand


async def test_every_request_fails_while_the_fault_is_on(hand: ByHand) -> None:
    with hand.server.faults.during(Fault(status=500)) as fault:
        assert (await hand.say(content="x")).status == 500
        assert (await hand("GET", "/users/@me")).status == 500
    assert fault.hits == 2
    assert (await hand.say(content="x")).status == 200
    hand.server.assert_clean()


async def test_a_fault_may_be_for_one_route_and_a_number_of_times(hand: ByHand) -> None:
    hand.server.faults.add(Fault("POST", MESSAGES, 429, count=1, retry_after=7, scope="global"))
    assert (await hand("GET", "/users/@me")).status == 200
    refused = await hand.say(content="x")
    assert refused.status == 429
    assert refused.body == {
        "message": "You are being rate limited.",
        "retry_after": 7,
        "global": True,
    }
    assert (await hand.say(content="x")).status == 200


async def test_discord_may_say_nothing_until_the_line_breaks(hand: ByHand) -> None:
    with hand.server.faults.during(Fault(status=None)) as fault:
        asked = asyncio.create_task(hand.say(content="x"))
        await hand.server.wait_for(lambda: hand.server.requests)
        await asyncio.sleep(0.1)
        assert not asked.done()
        assert fault.hits == 1
    with pytest.raises(aiohttp.ClientError):
        await asked
    assert hand.stage.lab.messages == []
    assert (await hand.say(content="x")).status == 200
    hand.server.assert_clean()


async def test_an_answer_may_be_lost_after_the_work_is_done(hand: ByHand) -> None:
    """What a nonce is for: the second try finds what the first one sent."""
    hand.server.faults.add(Fault("POST", MESSAGES, 502, count=1, carried_out=True))
    body = {"content": "x", "nonce": "1", "enforce_nonce": True}
    statuses = [(await hand.say(**body)).status for _ in range(2)]
    assert statuses == [502, 200]
    assert len(hand.stage.lab.messages) == 1
    hand.server.assert_clean()


async def test_a_route_that_is_not_served_does_not_pass_unseen(hand: ByHand) -> None:
    assert (await hand("GET", "/guilds/1/voice-states")).status == 404
    with pytest.raises(AssertionError, match=r"not served here: GET .*voice-states"):
        hand.server.assert_clean()


async def test_a_defect_of_the_server_does_not_look_like_a_refusal(hand: ByHand) -> None:
    assert (await hand("POST", "/users/@me/channels", {})).status == 501
    with pytest.raises(AssertionError, match="KeyError"):
        hand.server.assert_clean()
