import asyncio

import discord
import pytest

from bot.discord import channels, draw
from bot.discord.context import FRONT_END
from bot.discord.displays import DisplayProgress, DisplayTakenOverError
from bot.discord.submission_thread import run_displays
from bot.domain.submission import Submission
from runners.contract.task import Mode
from tests.doubles.discord.kinds import ChannelKind
from tests.doubles.discord.limits import MESSAGE, MESSAGES, THREADS
from tests.doubles.discord.model.files import File
from tests.doubles.discord.model.posting import delete
from tests.doubles.discord.permissions import Permission
from tests.doubles.discord.rest.faults import Fault
from tests.doubles.discord_displays import (
    CLOSED,
    ENOUGH,
    UNKNOWN_CHANNEL,
    UNKNOWN_MEMBER,
    UNKNOWN_MESSAGE,
    Lost,
    conversing,
    finished,
    judged,
    to_the_end,
)
from tests.doubles.discord_room import LEASE, OWNER, Room, room

LATE_S = 400.0
"""Discord has forgotten every nonce by then."""


def title(submission: Submission) -> str:
    """What a report begins with."""
    return f"submission #{submission.id}: kernel.py on vectoradd"


async def test_without_an_answer_the_thread_shows_progress_and_then_the_report(
    room: Room,
) -> None:
    submission = await room.submit()
    show = await room.claim(submission)
    assert await room.steps.advance(show, OWNER) == DisplayProgress()
    (live,) = room.thread.messages
    assert live.content.endswith("> CPU: queued, position 1")
    assert room.alice.can_see(room.thread)
    assert not room.bob.can_see(room.thread)
    await room.place.judged(submission)
    assert await to_the_end(room, show) >= 2
    assert live.content.endswith("> 🟢 CPU: passed")
    assert room.first_lines(room.thread)[1:] == [f"**{title(submission)}**"]
    assert room.first_lines(room.channel) == ["**Results of vectoradd**"]
    (line,) = room.results.messages
    assert line.content.startswith(f"<@{room.alice.id}>'s submission #{submission.id} kernel.py")
    assert line.silent
    assert not line.pings
    assert [each.label for each in line.buttons] == ["Details"]
    assert await finished(room, submission)
    room.server.assert_clean()


async def test_a_person_has_one_thread_for_all_runs_and_the_board_one_for_all_lines(
    room: Room,
) -> None:
    for number in range(3):
        submission, show = await judged(room)
        await to_the_end(room, show)
        assert room.reports(submission, room.thread) == 1
        # Only a first entry and a better time are told: the later runs are equally fast.
        assert len(room.results.messages) == 1, number
    assert len(room.channel.threads) == 2
    assert room.thread.name == f"vectoradd: ada ({room.place.ada})"
    assert room.thread.state is not None
    assert room.thread.state.auto_archive == 60
    room.server.assert_clean()


async def test_what_has_not_moved_costs_no_request(room: Room) -> None:
    show = await room.claim(await room.submit())
    await room.steps.advance(show, OWNER)
    room.server.forget()
    assert await room.steps.advance(show, OWNER) == DisplayProgress()
    assert room.server.requests == []


@pytest.mark.parametrize(
    ("method", "path", "nth"),
    [
        ("POST", THREADS, 1),
        ("PUT", "/channels/{channel_id}/thread-members/{user_id}", 1),
        *(("POST", MESSAGES, nth) for nth in (1, 2, 3)),
        ("POST", f"{MESSAGE}/threads", 1),
    ],
)
@pytest.mark.parametrize("waited_s", [0.0, LATE_S])
async def test_an_answer_that_is_lost_shows_nothing_twice(
    room: Room, method: str, path: str, nth: int, waited_s: float
) -> None:
    submission, show = await judged(room)
    with room.server.faults.during(Lost(method, path, nth)) as fault:
        with pytest.raises(discord.DiscordServerError):
            await to_the_end(room, show)
        show.doubtful = True
        room.server.clock.advance(waited_s)
        await to_the_end(room, show)
    assert fault.hits == 1
    assert len(room.thread.messages) == room.reports(submission) == 1
    assert room.first_lines(room.channel) == ["**Results of vectoradd**"]
    assert len(room.results.messages) == 1
    room.server.assert_clean()


async def test_who_takes_it_up_after_a_kill_reads_what_stands_there(room: Room) -> None:
    submission, show = await judged(room)
    lost = room.server.faults.during(Lost("POST", MESSAGES, 1))
    with lost, pytest.raises(discord.DiscordServerError):
        await to_the_end(room, show)
    room.server.clock.advance(LATE_S)
    room.place.clock.advance(LATE_S)
    await to_the_end(room, await room.claim(submission))
    assert len(room.thread.messages) == 1
    room.server.assert_clean()


@pytest.mark.parametrize("waited_s", [0.0, LATE_S])
async def test_a_live_message_from_before_a_kill_is_brought_to_its_end(
    room: Room, waited_s: float
) -> None:
    submission = await room.submit()
    show = await room.claim(submission)
    lost = room.server.faults.during(Lost("POST", MESSAGES, 1))
    with lost, pytest.raises(discord.DiscordServerError):
        await room.steps.advance(show, OWNER)
    (live,) = room.thread.messages
    assert live.content.endswith("queued, position 1")
    await room.place.judged(submission)
    show.doubtful = True
    room.server.clock.advance(waited_s)
    await to_the_end(room, show)
    assert live.content.endswith("> 🟢 CPU: passed")
    assert "Run again" in [each.label for each in live.buttons]
    assert len(room.thread.messages) == 2
    room.server.assert_clean()


async def test_who_has_lost_the_display_stops(room: Room) -> None:
    show = await room.claim(await room.submit())
    room.place.clock.advance(3600)
    await room.place.store.displays.claim(FRONT_END, "somebody", LEASE)
    with pytest.raises(DisplayTakenOverError):
        await room.steps.advance(show, OWNER)


@pytest.mark.parametrize("converses", [True, False])
async def test_without_permission_for_threads_only_an_existing_conversation_gets_the_report(
    *, converses: bool
) -> None:
    async with room(permissions=ENOUGH) as here:
        if converses:
            await conversing(here)
        here.channel.deny(here.guild.everyone, Permission.CREATE_PRIVATE_THREADS)
        await asyncio.sleep(0.1)
        submission, show = await judged(here)
        await to_the_end(here, show)
        assert here.reports(submission, here.alice.dm) == len(here.alice.dms) == converses
        assert len(here.results.messages) == 1
        here.server.assert_clean()
        assert await finished(here, submission)


async def test_an_announcement_channel_has_the_line_and_no_private_thread(room: Room) -> None:
    news = room.guild.create_channel("news", ChannelKind.NEWS)
    await room.server.wait_for(lambda: room.client.get_channel(news.id))
    room.channel = news
    submission, show = await judged(room)
    await to_the_end(room, show)
    assert [each.kind for each in news.threads] == [ChannelKind.NEWS_THREAD]
    assert len(room.results.messages) == 1
    assert await finished(room, submission)
    room.server.assert_clean()


@pytest.mark.parametrize("path", [THREADS, MESSAGES])
@pytest.mark.parametrize("code", [50013, 50024, 50035, 160005])
async def test_after_any_refusal_of_the_report_the_display_continues(
    room: Room, path: str, code: int
) -> None:
    await conversing(room)
    submission, show = await judged(room)
    with room.server.faults.during(Fault("POST", path, 400, code=code, count=1)):
        await to_the_end(room, show)
    assert room.reports(submission, room.alice.dm) == 1
    assert len(room.results.messages) == 1
    assert await finished(room, submission)


@pytest.mark.parametrize("in_guild", [True, False])
async def test_a_person_who_accepts_no_direct_messages_can_request_the_report(
    *, in_guild: bool
) -> None:
    async with room(permissions=ENOUGH) as here:
        await conversing(here)
        here.channel.deny(here.guild.everyone, Permission.CREATE_PRIVATE_THREADS)
        await asyncio.sleep(0.1)
        here.alice.dms_open = False
        submission, show = await judged(here, in_guild=in_guild)
        await to_the_end(here, show)
        assert len(here.channel.threads) == in_guild
        assert await finished(here, submission)
        here.server.assert_clean(allowing=[CLOSED])
        assert len(here.server.refused) == 1


async def test_in_direct_messages_the_report_stays_there(room: Room) -> None:
    submission, show = await judged(room, in_guild=False)
    await to_the_end(room, show)
    assert room.reports(submission, room.alice.dm) == len(room.alice.dms) == 1
    assert room.channel.messages == []
    room.server.assert_clean()


async def test_a_channel_that_is_deleted_in_the_middle_leaves_the_conversation(room: Room) -> None:
    await conversing(room)
    submission = await room.submit()
    show = await room.claim(submission)
    await room.steps.advance(show, OWNER)
    for each in [room.channel, *room.channel.threads]:
        room.server.world.channels.pop(each.id).deleted = True
    room.server.world.dispatch("CHANNEL_DELETE", room.channel.to_api(), None)
    await room.place.judged(submission)
    await to_the_end(room, show)
    assert room.reports(submission, room.alice.dm) == 1
    assert await finished(room, submission)
    room.server.assert_clean(allowing=[UNKNOWN_CHANNEL])


async def test_a_thread_of_one_run_by_an_earlier_version_is_still_used(room: Room) -> None:
    submission, show = await judged(room)
    channel = await channels.channel_of(room.client, room.channel.id)
    assert channel is not None
    old = await channels.open_thread(channel, f"#{submission.id} kernel.py on vectoradd")
    show.state = show.state.model_copy(update={"thread": old.id})
    await to_the_end(room, show)
    assert room.thread.id == old.id
    assert room.reports(submission) == 1


async def test_a_live_message_that_somebody_removes_is_let_go(room: Room) -> None:
    submission = await room.submit()
    show = await room.claim(submission)
    await room.steps.advance(show, OWNER)
    (live,) = room.thread.messages
    delete(live)
    await room.place.judged(submission)
    await to_the_end(room, show)
    assert room.first_lines(room.thread) == [f"**{title(submission)}**"]
    room.server.assert_clean(allowing=[UNKNOWN_MESSAGE])


async def test_a_person_who_left_the_guild_can_request_the_report(room: Room) -> None:
    submission, show = await judged(room, mode=Mode.TEST)
    room.guild.leave(room.alice)
    await to_the_end(room, show)
    assert room.alice.dms == []
    assert await finished(room, submission)
    room.server.assert_clean(allowing=[UNKNOWN_MEMBER])


async def test_a_report_of_several_messages_is_whole_in_the_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with room(commands=True) as here:
        file = File("kernel.py", b"x = 1\n")
        run = await here.alice.slash(
            "leaderboard submit test", script=file, leaderboard_name=here.place.board.name
        )
        await run.final()
        (submission,) = await here.place.store.submissions.to(here.place.board.id)
        await here.place.judged(submission)
        parts = tuple(draw.MessageDraft(f"part {number}") for number in range(3))
        monkeypatch.setattr(draw, "message_drafts", lambda _: parts)
        async with run_displays(here.client, here.context):
            await run.followup(1)
        assert run.message.text.startswith("part 0")
        assert [each.text for each in run.followups] == ["part 1", "part 2"]
        assert all(each.ephemeral for each in run.followups)
