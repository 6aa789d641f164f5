"""Who clicks on what nobody remembers is told; who is answered hears nothing more."""

from unittest.mock import Mock

import discord
import pytest

from bot.discord import interaction_claims
from bot.discord.context import DiscordContext
from bot.discord.interaction_claims import EXPIRED, answer_unhandled_click, replying
from tests.doubles.asked import asked, said
from tests.doubles.clock import ManualClock
from tests.doubles.memory_store import MemoryStore

COMPONENT = discord.InteractionType.component


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interaction_claims, "GRACE_S", 0.0)


@pytest.fixture
def context() -> DiscordContext:
    clock = ManualClock()
    return DiscordContext(MemoryStore(clock), clock)


def clicked(
    context: DiscordContext, kind: discord.InteractionType = COMPONENT, number: int = 1
) -> Mock:
    found = asked(context, number)
    found.type = kind
    return found


@pytest.mark.parametrize("kind", [COMPONENT, discord.InteractionType.modal_submit])
async def test_what_nobody_answers_is_answered_once(
    context: DiscordContext, kind: discord.InteractionType
) -> None:
    copies = [clicked(context, kind) for _ in range(2)]
    for each in copies:
        await answer_unhandled_click(each)
    assert [said(each) for each in copies] == [[EXPIRED], []]


async def test_a_command_is_left_alone(context: DiscordContext) -> None:
    command = clicked(context, discord.InteractionType.application_command)
    await answer_unhandled_click(command)
    command.response.defer.assert_not_awaited()


async def test_what_a_handler_has_is_left_to_it_however_slow_it_is(
    context: DiscordContext,
) -> None:
    own, other = clicked(context), clicked(context)
    async with replying(own) as answer:
        for each in (own, other):
            await answer_unhandled_click(each)
        await answer.say("done")
    assert (said(own), said(other)) == (["done"], [])
    other.response.defer.assert_not_awaited()


async def test_a_bot_that_ends_meanwhile_leaves_it_to_the_next_one(context: DiscordContext) -> None:
    found = clicked(context)
    found.client.is_closed.return_value = True
    await answer_unhandled_click(found)
    found.response.defer.assert_not_awaited()
