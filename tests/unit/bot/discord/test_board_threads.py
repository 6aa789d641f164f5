"""Each thread is created once, and old ones are archived to make room for new ones."""

import asyncio
from datetime import timedelta

import aiohttp
import discord
import pytest

from bot.discord import board_threads, channels
from bot.discord.context import DiscordContext
from bot.discord.displays import DisplayedSubmission
from runners.contract.task import Mode
from tests.doubles.discord.limits import MESSAGE, THREADS, Limits
from tests.doubles.discord.rest.faults import Fault
from tests.doubles.discord_displays import (
    TOO_MANY_THREADS,
    UNKNOWN_CHANNEL,
    Lost,
    conversing,
    judged,
    to_the_end,
)
from tests.doubles.discord_room import OWNER, Room, room

LATE_S = 400.0
"""After this time, Discord no longer knows any nonce."""


async def test_beyond_the_limit_the_oldest_finished_threads_are_archived(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(board_threads, "MOST_ACTIVE", 3)
    for number in range(6):
        room.place.clock.advance(1)
        submission = await room.submit(mode=Mode.TEST, user=room.members[number])
        if number != 1:
            await room.place.judged(submission)
        else:
            await room.place.claim()  # and that run is not over
        show = await room.claim(submission)
        if number != 1:
            await to_the_end(room, show)
        else:
            await room.steps.advance(show, OWNER)
        await asyncio.sleep(0.05)
    archived = [each.archived for each in room.channel.threads]
    assert archived == [True, False, True, True, False, False]
    room.server.assert_clean()


async def test_in_a_full_guild_threads_are_archived_or_the_conversation_has_the_report() -> None:
    async with room(limits=Limits(active_threads=1)) as here:
        _, show = await judged(here, mode=Mode.TEST)
        await to_the_end(here, show)
        submission = await here.submit(mode=Mode.TEST, user=here.bob)
        await here.place.judged(submission)
        await to_the_end(here, await here.claim(submission))
        assert [each.archived for each in here.channel.threads] == [True, False]
        here.server.world.limits.active_threads = 0
        here.alice.world.channels.pop(here.channel.threads[0].id)
        await conversing(here)
        submission, show = await judged(here, mode=Mode.TEST)
        await to_the_end(here, show)
        assert here.reports(submission, here.alice.dm) == 1
        here.server.assert_clean(allowing=[TOO_MANY_THREADS, UNKNOWN_CHANNEL])


@pytest.mark.parametrize("status", [502, 503])
@pytest.mark.parametrize("waited_s", [0.0, LATE_S, 2 * 3600.0])
async def test_a_thread_whose_creation_was_answered_by_an_error_is_found_even_archived(
    room: Room, waited_s: float, status: int
) -> None:
    submission, show = await judged(room, mode=Mode.TEST)
    with room.server.faults.during(Lost("POST", THREADS, 1, status)):  # discord.py repeats a 502
        with pytest.raises(discord.DiscordServerError):
            await to_the_end(room, show)
        show.doubtful = True
        room.server.clock.advance(waited_s)
        await to_the_end(room, show)
    assert room.reports(submission, room.thread) == 1
    assert room.alice.can_see(room.thread)
    room.server.assert_clean()


async def test_a_slow_creation_renews_its_lease_and_stays_the_only_one(room: Room) -> None:
    lease = timedelta(seconds=0.06)
    context = DiscordContext(room.place.store, room.place.clock, lease=lease)
    threads = board_threads.GuildThreads(room.client, context)
    channel = room.client.get_channel(room.channel.id)
    assert isinstance(channel, discord.TextChannel)
    (board,) = await room.place.store.boards.all()
    reader = room.place.ada, room.alice.id
    with room.server.faults.during(Fault("POST", THREADS, status=None)) as unanswered:
        first = asyncio.create_task(threads.private(channel, board, reader, 0))
        await room.server.wait_for(lambda: unanswered.hits)
        for _ in range(4):
            room.place.clock.advance(lease.total_seconds() / 2)
            await asyncio.sleep(lease.total_seconds() / 2)
        with pytest.raises(board_threads.ThreadBusyError):
            await threads.private(channel, board, reader, 0)
    with pytest.raises(aiohttp.ClientError):
        await first


async def test_a_public_thread_that_exists_already_is_used(room: Room) -> None:
    _, show = await judged(room)
    path = f"{MESSAGE}/threads"
    fault = Fault("POST", path, status=400, code=160004, carried_out=True, count=1)
    with room.server.faults.during(fault):
        await to_the_end(room, show)
    assert fault.hits == 1
    assert len(room.results.messages) == 1
    texts = room.channel.all_messages.values()
    assert [each.silent for each in texts if "Results of" in each.text] == [True]


async def test_a_thread_that_is_deleted_in_the_middle_is_replaced_once(room: Room) -> None:
    first, second = await room.submit(mode=Mode.TEST), await room.submit(mode=Mode.TEST)
    shows = [await room.claim(first)]
    shows += [DisplayedSubmission(second.id, shows[0].state)]
    for show in shows:
        await room.steps.advance(show, OWNER)
    room.server.world.channels.pop(room.thread.id).deleted = True
    for submission, show in zip((first, second), shows, strict=True):
        await room.place.judged(submission)
        await to_the_end(room, show)
        assert room.reports(submission, room.thread) == 1
    room.server.assert_clean(allowing=[UNKNOWN_CHANNEL])


async def test_an_archived_thread_is_unarchived_before_anything_is_edited(room: Room) -> None:
    submission = await room.submit()
    show = await room.claim(submission)
    await room.steps.advance(show, OWNER)
    room.server.clock.advance(2 * 3600)
    await room.client.http.get_channel(room.channel.id)  # Discord looks at its clock
    archived = room.thread.archived
    assert archived
    await asyncio.sleep(0.1)
    await room.place.judged(submission)
    await to_the_end(room, show)
    assert not room.thread.archived
    assert len(room.thread.messages) == 2
    room.server.assert_clean()


async def test_a_thread_that_was_archived_unnoticed_is_unarchived_and_not_replaced(
    room: Room,
) -> None:
    submission = await room.submit()
    show = await room.claim(submission)
    await room.steps.advance(show, OWNER)
    guild, number = room.client.guilds[0], room.thread.id
    known = guild.get_thread(number)
    assert known is not None
    room.server.clock.advance(2 * 3600)
    await room.client.http.get_channel(room.channel.id)  # Discord looks at its clock
    await room.server.wait_for(lambda: guild.get_thread(number) is None)
    guild._add_thread(known)  # as if the gateway had not said that it is archived
    await room.place.judged(submission)
    await to_the_end(room, show)
    assert (room.thread.id, room.thread.archived) == (number, False)
    assert room.reports(submission, room.thread) == 1
    room.server.assert_clean(allowing=[channels.ARCHIVED])


async def test_an_archived_public_thread_is_unarchived_before_a_line(room: Room) -> None:
    _, show = await judged(room)
    await to_the_end(room, show)
    week_s = 8 * 86_400
    room.server.clock.advance(week_s)
    await room.client.http.get_channel(room.channel.id)  # Discord looks at its clock
    results = room.results
    guild = room.client.guilds[0]
    await room.server.wait_for(lambda: guild.get_thread(results.id) is None)
    assert [each.archived for each in (results,)] == [True]
    second = await room.submit(user=room.bob)
    await room.place.judged(second)
    begun = len(room.server.requests)
    await to_the_end(room, await room.claim(second))
    there = [
        (each.method, each.status)
        for each in room.server.requests[begun:]
        if f"/channels/{results.id}" in each.path and each.method != "GET"
    ]
    assert there == [("PATCH", 200), ("POST", 200)]
    assert len(results.messages) == 2
    room.server.assert_clean()
