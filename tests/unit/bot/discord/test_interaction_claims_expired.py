"""A click or form without a handler gets an answer; one with a handler gets no second answer."""

import asyncio
import re
from datetime import timedelta
from unittest.mock import Mock

import discord
import pytest

from bot.discord import interaction_claims
from bot.discord.context import FRONT_END, DiscordContext, interaction_key
from bot.discord.interaction_claims import (
    EXPIRED,
    RESUMED,
    ResumedInteraction,
    answer_unhandled,
    replying,
)
from bot.discord.responses import MARK, MAY_BE_DONE
from bot.domain.records import InteractionRequest
from tests.doubles.clock import ManualClock
from tests.doubles.interaction import answer_texts, command_used
from tests.doubles.memory_store import MemoryStore

COMPONENT = discord.InteractionType.component
KNOWN = [re.compile(r"podium:[a-z]+")]
FORM = discord.InteractionType.modal_submit


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interaction_claims, "GRACE_S", 0.0)
    monkeypatch.setattr(interaction_claims, "_LEAST_GRACE_S", 0.0)


@pytest.fixture
def context() -> DiscordContext:
    clock = ManualClock()
    return DiscordContext(MemoryStore(clock), clock)


def clicked(
    context: DiscordContext, kind: discord.InteractionType = COMPONENT, custom_id: str = "3f2a"
) -> Mock:
    found = command_used(context)
    found.type, found.data = kind, {"custom_id": custom_id}
    return found


@pytest.mark.parametrize("kind", [COMPONENT, FORM])
async def test_an_interaction_without_a_handler_is_answered_once(
    context: DiscordContext, kind: discord.InteractionType
) -> None:
    copies = [clicked(context, kind) for _ in range(2)]
    for each in copies:
        await answer_unhandled(each, KNOWN)
    assert [answer_texts(each) for each in copies] == [[f"{MARK} {EXPIRED}"], []]


async def test_a_form_whose_process_ended_while_it_handled_it_says_that_it_may_be_done(
    context: DiscordContext,
) -> None:
    found = clicked(context, FORM)
    key, at = interaction_key(found), found.created_at
    request = InteractionRequest(key, FRONT_END, "{}", found.token, at)
    assert await context.store.interactions.claim(request, "next", context.lease)
    reset = RESUMED.set(ResumedInteraction(key, "next"))
    try:
        await answer_unhandled(found, KNOWN)
    finally:
        RESUMED.reset(reset)
    assert answer_texts(found) == [f"{MARK} {EXPIRED} {MAY_BE_DONE}"]


async def test_a_command_and_a_known_button_are_left_alone(context: DiscordContext) -> None:
    command = clicked(context, discord.InteractionType.application_command)
    button = clicked(context, custom_id="podium:again")
    for each in (command, button):
        await answer_unhandled(each, KNOWN)
        each.response.defer.assert_not_awaited()


async def test_an_interaction_that_a_handler_has_is_left_to_it_however_slow_it_is(
    context: DiscordContext,
) -> None:
    own, other = clicked(context), clicked(context)
    async with replying(own) as answer:
        for each in (own, other):
            await answer_unhandled(each, KNOWN)
        await answer.say("done")
    assert (answer_texts(own), answer_texts(other)) == (["done"], [])
    other.response.defer.assert_not_awaited()


async def test_a_bot_that_is_ending_leaves_the_answer_to_the_next_process(
    context: DiscordContext,
) -> None:
    found = clicked(context)
    found.client.is_closed.return_value = True
    await answer_unhandled(found, KNOWN)
    found.response.defer.assert_not_awaited()


@pytest.mark.parametrize(
    ("kind", "age_s", "waited"),
    [
        (COMPONENT, 0.0, []),
        (COMPONENT, 2.9, []),
        (FORM, 0.0, [1.0]),
        (FORM, 0.75, [0.25]),
        (FORM, 2.9, [0.1]),
        (FORM, -60.0, [1.0]),
    ],
)
async def test_only_a_form_waits_for_its_handler_and_less_if_it_comes_late(
    context: DiscordContext,
    monkeypatch: pytest.MonkeyPatch,
    kind: discord.InteractionType,
    age_s: float,
    waited: list[float],
) -> None:
    monkeypatch.undo()
    pauses: list[float] = []

    async def note(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", note)
    found = clicked(context, kind)
    found.created_at = context.clock.now() - timedelta(seconds=age_s)
    await answer_unhandled(found, KNOWN)
    assert pauses == [pytest.approx(each) for each in waited]
    assert answer_texts(found) == [f"{MARK} {EXPIRED}"]
