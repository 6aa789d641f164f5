"""A line is posted once, as soon as the bot is permitted, and only if something changed."""

import asyncio

from bot.discord.displays import DisplayProgress, Phase
from bot.discord.public_lines import BLOCKED_S
from runners.contract.verdict import Stage, Verdict
from tests.doubles.discord.limits import MESSAGES
from tests.doubles.discord.permissions import Permission
from tests.doubles.discord.rest.faults import Fault
from tests.doubles.discord_displays import (
    ENOUGH,
    UNKNOWN_CHANNEL,
    faster,
    finished,
    judged,
    to_the_end,
)
from tests.doubles.discord_room import OWNER, Room, room

WRITING = Permission.SEND_MESSAGES | Permission.SEND_MESSAGES_IN_THREADS


async def test_without_permission_to_write_the_line_waits_until_it_returns() -> None:
    async with room(permissions=ENOUGH) as here:
        here.channel.deny(here.guild.everyone, WRITING)
        await asyncio.sleep(0.1)
        submission, show = await judged(here)
        reached = [await here.steps.advance(show, OWNER) for _ in range(5)]
        assert reached[-1] == DisplayProgress(again_s=BLOCKED_S, waits=True, requested=False)
        here.server.forget()
        await here.steps.advance(show, OWNER)
        assert here.server.requests == []
        here.channel.allow(here.guild.everyone, WRITING)
        await asyncio.sleep(0.1)
        await to_the_end(here, show)
        assert len(here.results.messages) == 1
        assert await finished(here, submission)
        here.server.assert_clean()


async def test_who_may_write_in_threads_but_open_none_waits_until_that_is_allowed() -> None:
    denied = Permission.SEND_MESSAGES | Permission.CREATE_PUBLIC_THREADS
    async with room(permissions=ENOUGH) as here:
        here.channel.deny(here.guild.everyone, denied)
        await asyncio.sleep(0.1)
        submission, show = await judged(here)
        reached = [await here.steps.advance(show, OWNER) for _ in range(5)]
        assert reached[-1] == DisplayProgress(again_s=BLOCKED_S, waits=True, requested=False)
        here.channel.allow(here.guild.everyone, denied)
        await asyncio.sleep(0.1)
        await to_the_end(here, show)
        assert len(here.results.messages) == 1
        assert await finished(here, submission)


async def test_without_permission_for_threads_the_line_is_in_the_channel() -> None:
    async with room(permissions=ENOUGH) as here:
        here.channel.deny(here.guild.everyone, Permission.CREATE_PUBLIC_THREADS)
        await asyncio.sleep(0.1)
        _, show = await judged(here)
        await to_the_end(here, show)
        (line,) = here.channel.messages
        assert "1st of 1 on CPU" in line.content
        assert line.silent
        here.server.assert_clean()


async def test_a_refused_line_is_posted_later(room: Room) -> None:
    submission, show = await judged(room)
    while show.phase is not Phase.LINE:
        await room.steps.advance(show, OWNER)
    with room.server.faults.during(Fault("POST", MESSAGES, 403, code=50013, count=2)):
        waits = [await room.steps.advance(show, OWNER) for _ in range(2)]
    assert [each.again_s for each in waits] == [60.0, 120.0]
    await to_the_end(room, show)
    assert len(room.results.messages) == 1
    assert await finished(room, submission)


async def test_a_public_thread_that_was_deleted_is_opened_again(room: Room) -> None:
    _, show = await judged(room)
    await to_the_end(room, show)
    room.results.deleted = True
    room.server.world.channels.pop(room.results.id)
    submission = await room.submit()
    await room.place.judged(submission, cases=faster(500.0))
    await to_the_end(room, await room.claim(submission))
    (line,) = room.results.messages
    assert f"#{submission.id}" in line.content
    room.server.assert_clean(allowing=[UNKNOWN_CHANNEL])


async def test_a_better_time_gets_a_line(room: Room) -> None:
    for time_ns in (900.0, 500.0):
        submission = await room.submit()
        await room.place.judged(submission, cases=faster(time_ns))
        await to_the_end(room, await room.claim(submission))
    assert len(room.results.messages) == 2
    room.server.assert_clean()


async def test_a_submission_without_a_score_has_no_public_line(room: Room) -> None:
    submission = await room.submit()
    await room.place.judged(submission, verdict=Verdict.WRONG_ANSWER, stage=Stage.TEST)
    await to_the_end(room, await room.claim(submission))
    assert room.channel.messages == []
    room.server.assert_clean()
