import asyncio

import discord
import pytest
from typing_extensions import override

from bot.discord.context import FRONT_END
from bot.discord.submission_steps import (
    DisplayedSubmission,
    DisplayProgress,
    DisplayTakenOverError,
)
from bot.domain.submission import Submission
from runners.contract.task import Mode
from runners.contract.verdict import Stage, Verdict
from tests.doubles.discord.limits import MESSAGE, MESSAGES, THREADS, Limits
from tests.doubles.discord.model.posting import delete
from tests.doubles.discord.permissions import EVERYONE, Permission
from tests.doubles.discord.rest.faults import Fault
from tests.doubles.discord_room import LEASE, OWNER, Room, room

LATE_S = 400.0
"""Discord has forgotten every nonce by then."""
UNKNOWN_CHANNEL, UNKNOWN_MEMBER, UNKNOWN_MESSAGE = 10003, 10007, 10008
CLOSED, ARCHIVED, TOO_MANY_THREADS = 50007, 50083, 160006
"""What cannot be known beforehand, and is refused once."""
ENOUGH = EVERYONE | Permission.MANAGE_THREADS | Permission.MANAGE_ROLES | Permission.MANAGE_CHANNELS


async def to_the_end(room: Room, show: DisplayedSubmission) -> int:
    """Forward until all is shown; gives how often it took."""
    for count in range(1, 20):
        reached = await room.steps.advance(show, OWNER)
        if reached.done:
            return count
        await asyncio.sleep(reached.again_s or 0)
    raise AssertionError("it never came to an end")


async def judged(
    room: Room, *, in_guild: bool = True, mode: Mode = Mode.RANKED
) -> tuple[Submission, DisplayedSubmission]:
    submission = await room.submit(in_guild=in_guild, mode=mode)
    await room.place.judged(submission)
    return submission, await room.claim(submission)


def title(submission: Submission) -> str:
    """What a report begins with."""
    return f"submission #{submission.id}: kernel.py on vectoradd"


async def finished(room: Room, submission: Submission) -> bool:
    """Whether nobody will show it any more."""
    room.place.clock.advance(3600)
    left = await room.place.store.displays.claim(FRONT_END, "somebody", LEASE)
    return submission.id not in [each.submission for each in left]


async def test_a_submission_moves_in_its_thread_and_ends_with_report_and_line(room: Room) -> None:
    submission = await room.submit()
    show = await room.claim(submission)
    assert await room.steps.advance(show, OWNER) == DisplayProgress()
    (live,) = room.thread(submission).messages
    assert live.content.endswith("> CPU: queued, position 1")
    assert room.alice.can_see(room.thread(submission))
    assert not room.bob.can_see(room.thread(submission))
    await room.place.judged(submission)
    assert await to_the_end(room, show) >= 2
    assert live.content.endswith("> 🟢 CPU: passed")
    head = title(submission)
    assert room.first_lines(room.thread(submission))[1:] == [f"**{head}**"]
    (line,) = room.channel.messages
    assert line.content.startswith(f"<@{room.alice.id}>'s submission #{submission.id} kernel.py")
    assert not line.pings
    assert room.first_lines(room.thread(submission, private=False)) == [f"**{head}**"]
    assert await finished(room, submission)
    room.server.assert_clean()


async def test_what_has_not_moved_costs_no_request(room: Room) -> None:
    show = await room.claim(await room.submit())
    await room.steps.advance(show, OWNER)
    room.server.forget()
    assert await room.steps.advance(show, OWNER) == DisplayProgress()
    assert room.server.requests == []


class Lost(Fault):
    """The nth request of a route is carried out, and its answer is lost."""

    def __init__(self, method: str, path: str, nth: int) -> None:
        super().__init__(method, path, 503, carried_out=True)
        self.before = nth - 1

    @override
    def applies_to(self, method: str, path: str) -> bool:
        if self.hits or not super().applies_to(method, path):
            return False
        self.before -= 1
        return self.before < 0


@pytest.mark.parametrize(
    ("method", "path", "nth"),
    [
        ("POST", THREADS, 1),
        ("PUT", "/channels/{channel_id}/thread-members/{user_id}", 1),
        *(("POST", MESSAGES, nth) for nth in (1, 2, 3, 4)),
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
    assert len(room.thread(submission).messages) == 2
    assert len(room.channel.messages) == 1
    assert len(room.thread(submission, private=False).messages) == 1
    room.server.assert_clean()


async def test_who_takes_it_up_after_a_kill_reads_what_stands_there(room: Room) -> None:
    submission, show = await judged(room)
    lost = room.server.faults.during(Lost("POST", MESSAGES, 2))
    with lost, pytest.raises(discord.DiscordServerError):
        await to_the_end(room, show)
    room.server.clock.advance(LATE_S)
    room.place.clock.advance(LATE_S)
    await to_the_end(room, await room.claim(submission))
    assert len(room.thread(submission).messages) == 2
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
    (live,) = room.thread(submission).messages
    assert live.content.endswith("queued, position 1")
    await room.place.judged(submission)
    show.doubtful = True
    room.server.clock.advance(waited_s)
    await to_the_end(room, show)
    assert live.content.endswith("> 🟢 CPU: passed")
    assert "Run again" in [each.label for each in live.buttons]
    assert len(room.thread(submission).messages) == 2
    room.server.assert_clean()


async def test_who_has_lost_the_display_stops(room: Room) -> None:
    show = await room.claim(await room.submit())
    room.place.clock.advance(3600)
    await room.place.store.displays.claim(FRONT_END, "somebody", LEASE)
    with pytest.raises(DisplayTakenOverError):
        await room.steps.advance(show, OWNER)


async def test_without_leave_for_threads_it_goes_on_in_direct_messages() -> None:
    async with room(permissions=ENOUGH) as here:
        here.channel.deny(here.guild.everyone, Permission.CREATE_PRIVATE_THREADS)
        await asyncio.sleep(0.1)
        submission, show = await judged(here)
        await to_the_end(here, show)
        assert [text.split(":")[0] for text in here.first_lines(here.alice.dm)] == [
            f"**Submission #{submission.id}**",
            f"**submission #{submission.id}",
        ]
        assert len(here.channel.messages) == 1
        here.server.assert_clean()


async def test_without_leave_to_write_in_the_channel_there_is_no_line() -> None:
    async with room(permissions=ENOUGH) as here:
        here.channel.deny(here.guild.everyone, Permission.SEND_MESSAGES)
        await asyncio.sleep(0.1)
        submission, show = await judged(here)
        await to_the_end(here, show)
        assert len(here.thread(submission).messages) == 2
        assert here.channel.messages == []
        assert await finished(here, submission)
        here.server.assert_clean()


async def test_who_takes_no_direct_messages_either_still_has_a_public_line() -> None:
    async with room(permissions=ENOUGH) as here:
        here.channel.deny(here.guild.everyone, Permission.CREATE_PRIVATE_THREADS)
        await asyncio.sleep(0.1)
        here.alice.dms_open = False
        submission, show = await judged(here)
        await to_the_end(here, show)
        assert len(here.channel.messages) == 1
        assert await finished(here, submission)
        here.server.assert_clean(allowing=[CLOSED])
        assert len(here.server.refused) == 1


async def test_closed_direct_messages_end_what_was_submitted_there(room: Room) -> None:
    room.alice.dms_open = False
    _, show = await judged(room, in_guild=False)
    with pytest.raises(discord.Forbidden):
        await to_the_end(room, show)
    room.alice.dms_open = True
    await to_the_end(room, show)
    assert len(room.alice.dms) == 2
    assert room.channel.messages == []


@pytest.mark.parametrize("lost", ["thread", "channel"])
async def test_what_is_removed_in_the_middle_goes_on_in_direct_messages(
    room: Room, lost: str
) -> None:
    submission = await room.submit()
    show = await room.claim(submission)
    await room.steps.advance(show, OWNER)
    for each in room.channel.threads:
        each.deleted = True
    room.channel.deleted = lost == "channel"
    if room.channel.deleted:
        room.server.world.dispatch("CHANNEL_DELETE", room.channel.to_api(), room.channel)
    await room.place.judged(submission)
    await to_the_end(room, show)
    assert [text.split(" ")[0] for text in room.first_lines(room.alice.dm)] == [
        "**Submission",
        "**submission",
    ]
    assert await finished(room, submission)
    room.server.assert_clean(allowing=[UNKNOWN_CHANNEL])


async def test_a_thread_that_was_put_away_is_woken(room: Room) -> None:
    submission = await room.submit()
    show = await room.claim(submission)
    await room.steps.advance(show, OWNER)
    thread = room.thread(submission)
    assert thread.state is not None
    thread.state.archived = True
    await room.place.judged(submission)
    await to_the_end(room, show)
    assert len(thread.messages) == 2
    assert room.alice.dms == []
    room.server.assert_clean(allowing=[ARCHIVED])


async def test_a_live_message_that_somebody_removes_is_let_go(room: Room) -> None:
    submission = await room.submit()
    show = await room.claim(submission)
    await room.steps.advance(show, OWNER)
    (live,) = room.thread(submission).messages
    delete(live)
    await room.place.judged(submission)
    await to_the_end(room, show)
    assert room.first_lines(room.thread(submission)) == [f"**{title(submission)}**"]
    room.server.assert_clean(allowing=[UNKNOWN_MESSAGE])


async def test_a_guild_full_of_threads_leaves_direct_messages() -> None:
    async with room(limits=Limits(active_threads=0)) as here:
        _, show = await judged(here, mode=Mode.TEST)
        await to_the_end(here, show)
        assert len(here.alice.dms) == 2
        here.server.assert_clean(allowing=[TOO_MANY_THREADS])


async def test_who_has_left_the_guild_is_written_to(room: Room) -> None:
    _, show = await judged(room, mode=Mode.TEST)
    room.guild.leave(room.alice)
    await to_the_end(room, show)
    assert len(room.alice.dms) == 2
    room.server.assert_clean(allowing=[UNKNOWN_MEMBER])


async def test_a_public_line_only_tells_of_scores(room: Room) -> None:
    submission = await room.submit()
    await room.place.judged(submission, verdict=Verdict.WRONG_ANSWER, stage=Stage.TEST)
    await to_the_end(room, await room.claim(submission))
    assert room.channel.messages == []
    room.server.assert_clean()
