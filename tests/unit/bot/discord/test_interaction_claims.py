"""What is claimed is done once and told once, whatever becomes of its acknowledgement."""

import asyncio
import json
from contextlib import suppress
from datetime import timedelta
from unittest.mock import AsyncMock, Mock

import aiohttp
import discord
import pytest
import structlog

from bot.discord import interaction_claims as module
from bot.discord.context import DiscordContext, interaction_key
from bot.discord.interaction_claims import (
    DATABASE_UNAVAILABLE,
    FIRST_LEASE,
    direct_response,
    replacing,
    replying,
)
from bot.discord.responses import ALREADY_ANSWERED, UNKNOWN_INTERACTION, SupersededError
from bot.domain.errors import StoreError, UserError
from bot.domain.records import InteractionRequest, OpenRequest
from tests.doubles.clock import ManualClock
from tests.doubles.interaction import TOKEN, answer_texts, command_used
from tests.doubles.memory_store import MemoryStore

LEASE = timedelta(seconds=30)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def context(clock: ManualClock) -> DiscordContext:
    return DiscordContext(MemoryStore(clock), clock)


@pytest.fixture(autouse=True)
def moved(clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Who sleeps moves the clock instead; gives for how long."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        clock.advance(seconds)
        await asyncio.sleep(0)

    monkeypatch.setattr(module, "asyncio", Mock(wraps=asyncio, sleep=sleep))
    return slept


def refusal(code: int, status: int = 400) -> discord.HTTPException:
    return discord.HTTPException(Mock(status=status, reason=""), {"code": code, "message": "no"})


def fail(error: Exception) -> None:
    raise error


async def carried_out(interaction: Mock, words: str = "done") -> bool:
    """Whether the interaction is done in this process."""
    ran = False
    try:
        async with replying(interaction) as answer:
            ran = True
            await answer.say(words)
    except SupersededError:
        return False
    return ran


async def claimed(context: DiscordContext, interaction: Mock, owner: str = "another copy") -> None:
    """Another copy has claimed it, and not acknowledged it yet."""
    it = InteractionRequest(
        interaction_key(interaction), "discord", "{}", TOKEN, context.clock.now()
    )
    assert await context.store.interactions.claim(it, owner, FIRST_LEASE)


async def is_done(context: DiscordContext, interaction: Mock) -> bool:
    """Whether nobody will do it again."""
    ages = timedelta(days=-9)
    return await context.store.interactions.claim_unfinished("discord", "t", LEASE, ages) == ()


LOST = [
    refusal(ALREADY_ANSWERED),
    refusal(UNKNOWN_INTERACTION, 404),
    discord.DiscordServerError(Mock(status=502, reason=""), "lost"),
    TimeoutError(),
]


@pytest.mark.parametrize("answer", LOST)
async def test_who_holds_the_claim_goes_on_whatever_discord_says_of_the_acknowledgement(
    context: DiscordContext, answer: Exception
) -> None:
    interaction = command_used(context)
    interaction.response.defer.side_effect = answer
    assert await carried_out(interaction)
    assert answer_texts(interaction) == ["done"]
    assert await is_done(context, interaction)


async def test_a_connection_that_broke_is_tried_again(context: DiscordContext) -> None:
    interaction = command_used(context)
    interaction.response.defer.side_effect = [
        aiohttp.ServerDisconnectedError(), refusal(ALREADY_ANSWERED)
    ]  # fmt: skip
    assert await carried_out(interaction)
    assert interaction.response.defer.await_count == 2


async def test_of_two_copies_one_does_it(context: DiscordContext) -> None:
    pair = command_used(context), command_used(context)
    ran = await asyncio.gather(*map(carried_out, pair))
    assert sorted(ran) == [False, True]
    assert sorted(len(answer_texts(each)) for each in pair) == [0, 1]
    assert sorted(each.response.defer.await_count for each in pair) == [0, 1]


async def test_it_is_not_done_again_when_it_is_told_again(context: DiscordContext) -> None:
    assert await carried_out(command_used(context))
    again = command_used(context)
    assert not await carried_out(again)
    again.response.defer.assert_not_awaited()
    assert answer_texts(again) == []


async def test_a_copy_that_lost_the_claim_looks_again_after_a_second(
    context: DiscordContext, moved: list[float]
) -> None:
    interaction = command_used(context)
    await claimed(context, interaction)
    assert await carried_out(interaction)
    assert moved == [1.0]
    assert answer_texts(interaction) == ["done"]


async def test_it_gives_way_to_a_holder_that_has_acknowledged(
    context: DiscordContext, moved: list[float]
) -> None:
    interaction = command_used(context)
    await claimed(context, interaction)
    assert await context.store.interactions.renew(
        interaction_key(interaction), "another copy", LEASE
    )
    assert not await carried_out(interaction)
    assert moved == [1.0]
    interaction.response.defer.assert_not_awaited()


async def test_who_was_taken_over_while_it_acknowledged_does_nothing(
    context: DiscordContext, clock: ManualClock
) -> None:
    interaction = command_used(context)

    async def slow(**_: object) -> None:
        clock.advance(2)
        await claimed(context, interaction)

    interaction.response.defer.side_effect = slow
    assert not await carried_out(interaction)
    assert answer_texts(interaction) == []


async def test_the_token_is_kept_until_it_is_done_and_in_no_log(context: DiscordContext) -> None:
    interaction = command_used(context)
    with structlog.testing.capture_logs() as logs:
        async with replying(interaction):
            ages = timedelta(days=-9)
            kept = await context.store.interactions.claim_unfinished("discord", "t", LEASE, ages)
            assert [each.token for each in kept] == [TOKEN]
            assert TOKEN not in kept[0].request
            fail(RuntimeError())
        interaction = command_used(context, 2)
        interaction.response.defer.side_effect = refusal(0, 500)
        interaction.edit_original_response.side_effect = refusal(0, 500)
        async with replying(interaction) as answer:
            await answer.say("nobody hears this")
    assert logs
    assert TOKEN not in str(logs)


async def test_what_is_wrong_is_told_and_that_is_the_end_of_it(context: DiscordContext) -> None:
    interaction = command_used(context)
    async with replying(interaction):
        fail(UserError("closed", "the board is closed"))
    assert answer_texts(interaction) == ["⚠️ The board is closed"]
    assert await is_done(context, interaction)


async def test_what_fails_for_want_of_the_database_is_done_later_and_that_is_said(
    context: DiscordContext,
) -> None:
    interaction = command_used(context)
    async with replying(interaction):
        fail(StoreError("gone"))
    (words,) = answer_texts(interaction)
    assert "Your request is saved" in words
    assert not await is_done(context, interaction)


@pytest.mark.parametrize("concluded", [True, False])
async def test_a_failed_form_says_to_try_again_unless_its_outcome_is_stored(
    context: DiscordContext, *, concluded: bool
) -> None:
    interaction = command_used(context)
    interaction.type = discord.InteractionType.modal_submit
    interaction.data = {"custom_id": "a-form-of-this-process"}
    async with replying(interaction) as answer:
        if concluded:
            await answer.conclude("The board is deleted.")
        fail(StoreError("gone"))
    words = "Your request is saved" if concluded else "the service is unavailable. Try again soon"
    told = answer_texts(interaction) + [
        each.args[0] for each in interaction.followup.send.mock_calls
    ]
    assert words in told[-1]
    assert await is_done(context, interaction) != concluded


async def test_a_bot_that_is_being_stopped_leaves_it_to_the_next_at_once(
    context: DiscordContext, clock: ManualClock
) -> None:
    interaction = command_used(context)
    with structlog.testing.capture_logs() as logs:
        async with replying(interaction):
            interaction.client.is_closed.return_value = True
            fail(RuntimeError("Session is closed"))
    assert answer_texts(interaction) == []
    assert logs == []
    (left,) = await context.store.interactions.claim_unfinished("discord", "t", LEASE, timedelta())
    assert left.tries == 0


async def test_a_handler_that_takes_longer_than_its_lease_continues_until_another_takes_over(
    context: DiscordContext, clock: ManualClock
) -> None:
    hasty = DiscordContext(context.store, context.clock, lease=timedelta(milliseconds=600))
    interaction = command_used(hasty)
    async with replying(interaction) as answer:
        await asyncio.wait({asyncio.get_running_loop().create_future()}, timeout=1.0)
        await answer.say("still here")
        clock.advance(1)
        assert await context.store.interactions.claim_unfinished(
            "discord", "another copy", LEASE, timedelta()
        )
        await asyncio.Event().wait()
        await answer.say("too late")
    assert answer_texts(interaction) == ["still here"]
    assert not await is_done(context, interaction)


async def test_an_outcome_is_stored_before_it_is_sent(context: DiscordContext) -> None:
    interaction, stored = command_used(context), list[OpenRequest]()

    async def look(**_: object) -> None:
        ages = timedelta(days=-9)
        stored.extend(
            await context.store.interactions.claim_unfinished("discord", "t", LEASE, ages)
        )

    interaction.edit_original_response.side_effect = look
    async with replying(interaction) as answer:
        await answer.conclude("the limit is removed")
    assert json.loads(stored[0].request)["outcome"] == "the limit is removed"


async def test_a_process_that_lost_its_claim_concludes_nothing(context: DiscordContext) -> None:
    interaction = command_used(context)
    async with replying(interaction) as answer:
        ages = timedelta(days=-9)
        await context.store.interactions.claim_unfinished("discord", "t", LEASE, ages)
        await answer.conclude("the limit is removed")
    assert answer_texts(interaction) == []


async def test_a_followed_answer_keeps_its_token_and_needs_no_direct_message(
    context: DiscordContext,
) -> None:
    interaction = command_used(context)
    interaction.edit_original_response.side_effect = refusal(50027, 401)
    async with replying(interaction) as answer:
        answer.is_followed = True
        await answer.say("stored")
    kept = await context.store.interactions.answer_of(interaction_key(interaction))
    assert (kept.done, kept.token) == (True, TOKEN)
    interaction.user.send.assert_not_awaited()


async def test_a_click_that_replaces_its_message_leaves_it_alone_on_an_error(
    context: DiscordContext,
) -> None:
    interaction = command_used(context)
    async with replacing(interaction):
        fail(UserError("closed", "the board is closed"))
    interaction.response.defer.assert_awaited_once_with(ephemeral=True, thinking=False)
    assert answer_texts(interaction) == []
    assert interaction.followup.send.await_args.args == ("⚠️ The board is closed",)


class TestTheFirstResponseIsTheAnswer:
    """A form, for example."""

    async def test_of_two_copies_one_opens_it(self, context: DiscordContext) -> None:
        opened = []
        for _ in range(2):
            with suppress(SupersededError):
                async with direct_response(command_used(context)):
                    opened.append("form")
        assert opened == ["form"]
        assert await is_done(context, command_used(context))

    async def test_an_error_is_the_first_response(self, context: DiscordContext) -> None:
        interaction = command_used(context)
        async with direct_response(interaction):
            fail(UserError("closed", "the board is closed"))
        assert interaction.response.send_message.await_args.args == ("⚠️ The board is closed",)
        assert await is_done(context, interaction)

    async def test_a_response_that_comes_too_late_is_superseded(
        self, context: DiscordContext
    ) -> None:
        with pytest.raises(SupersededError):
            async with direct_response(command_used(context)):
                fail(refusal(ALREADY_ANSWERED))
        assert await is_done(context, command_used(context))


async def test_only_the_first_message_fills_the_answer(context: DiscordContext) -> None:
    interaction = command_used(context)
    async with replying(interaction) as answer:
        await answer.say("one")
        await answer.say("two")
    assert answer_texts(interaction) == ["one"]
    assert interaction.followup.send.await_args.args == ("two",)


async def conversing(context: DiscordContext, interaction: Mock) -> AsyncMock:
    """Store that the person has begun direct messages; return the mock that sends one."""
    person = await context.store.people.ensure(f"discord:{interaction.user.id}", "ada")
    await context.store.displays.save_conversation(person.id, "55")
    send = AsyncMock()
    interaction.client.get_partial_messageable = Mock(return_value=Mock(send=send))
    return send


@pytest.mark.parametrize("error", [refusal(50027, 401), refusal(10015, 404)])
async def test_without_a_token_a_person_who_has_begun_direct_messages_gets_one(
    context: DiscordContext, error: Exception
) -> None:
    interaction = command_used(context)
    interaction.edit_original_response.side_effect = error
    send = await conversing(context, interaction)
    assert await carried_out(interaction)
    interaction.client.get_partial_messageable.assert_called_once_with(55)
    send.assert_awaited_once()
    assert send.await_args is not None
    assert send.await_args.args == ("done",)
    assert await is_done(context, interaction)


async def test_the_bot_begins_no_direct_messages_during_an_outage(context: DiscordContext) -> None:
    asked_by = [command_used(context, number) for number in range(1, 20)]
    for interaction in asked_by:
        interaction.edit_original_response.side_effect = refusal(10015, 404)
        assert await carried_out(interaction)
        interaction.user.send.assert_not_awaited()
        interaction.user.create_dm.assert_not_called()
        interaction.client.create_dm.assert_not_called()
        interaction.client.get_partial_messageable.assert_not_called()
        assert await is_done(context, interaction)


async def test_a_person_who_refuses_direct_messages_ends_no_process(
    context: DiscordContext,
) -> None:
    interaction = command_used(context)
    interaction.edit_original_response.side_effect = refusal(10015, 404)
    closed = discord.Forbidden(Mock(status=403, reason=""), {"code": 50007, "message": "no"})
    (await conversing(context, interaction)).side_effect = closed
    assert await carried_out(interaction)
    assert await is_done(context, interaction)


async def test_any_command_in_direct_messages_begins_them(context: DiscordContext) -> None:
    interaction = command_used(context)
    interaction.guild_id = None
    interaction.user.global_name, interaction.user.name = "Ada", "ada"
    assert await carried_out(interaction)
    person = await context.store.people.find(f"discord:{interaction.user.id}")
    assert person is not None
    assert await context.store.displays.conversation(person.id) == str(interaction.channel_id)


class TestTheDatabaseIsAway:
    """For more than the second that the acknowledgement waits for it."""

    @pytest.fixture(autouse=True)
    def _hasty(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "DATABASE_WAIT_S", 0.01)

    async def test_it_is_acknowledged_and_said_and_done_once_it_is_back(
        self, context: DiscordContext, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        interaction, back = command_used(context), asyncio.Event()
        claim = context.store.interactions.claim

        async def slow(asked: InteractionRequest, owner: str, lease: timedelta) -> bool:
            await back.wait()
            return await claim(asked, owner, lease)

        monkeypatch.setattr(context.store.interactions, "claim", slow)
        interaction.edit_original_response.side_effect = lambda **_: back.set()
        assert await carried_out(interaction)
        assert answer_texts(interaction) == [DATABASE_UNAVAILABLE, "done"]
        interaction.response.defer.assert_awaited_once()

    async def test_when_it_stays_away_that_is_the_last_word(
        self, context: DiscordContext, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        interaction, told = command_used(context), asyncio.Event()

        async def gone(*_: object) -> bool:
            await told.wait()
            raise StoreError("gone")

        monkeypatch.setattr(context.store.interactions, "claim", gone)
        monkeypatch.setattr(module, "DATABASE_RETRY_S", 0.0)
        interaction.edit_original_response.side_effect = lambda **_: told.set()
        assert not await carried_out(interaction)
        assert answer_texts(interaction) == [DATABASE_UNAVAILABLE]

    async def test_another_copy_that_has_acknowledged_is_not_talked_over(
        self, context: DiscordContext, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        interaction, refused = command_used(context), asyncio.Event()

        async def late(*_: object) -> bool:
            await refused.wait()
            return False

        async def given_way(**_: object) -> None:
            refused.set()
            raise refusal(ALREADY_ANSWERED)

        monkeypatch.setattr(context.store.interactions, "claim", late)
        interaction.response.defer.side_effect = given_way
        assert not await carried_out(interaction)
        assert answer_texts(interaction) == []
