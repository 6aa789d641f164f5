"""People with notifications on get one per long run; others are offered them once."""

import discord
import pytest

from bot.domain.notifications import NotificationKind
from bot.domain.submission import Submission
from runners.contract.task import Mode
from tests.doubles.discord.limits import MESSAGES
from tests.doubles.discord.model.channels import Channel
from tests.doubles.discord.model.messages import Message
from tests.doubles.discord_displays import Lost, finished, to_the_end
from tests.doubles.discord_room import OWNER, Room

OFFER, NO_MORE = "Notify me of results", "No more notifications"
LONG_S, SHORT_S = 120.0, 119.0
LATE_S = 400.0
"""After this time, Discord no longer knows any nonce."""


async def ran(room: Room, seconds: float, *, in_guild: bool = True) -> Submission:
    """A test of Bob's that took this long, not displayed yet."""
    submission = await room.submit(in_guild=in_guild, mode=Mode.TEST, user=room.bob)
    room.place.clock.advance(seconds)
    await room.place.judged(submission)
    return submission


async def displayed(room: Room, seconds: float, *, in_guild: bool = True) -> Submission:
    submission = await ran(room, seconds, in_guild=in_guild)
    await to_the_end(room, await room.claim(submission))
    return submission


async def wants(room: Room, *kinds: NotificationKind) -> None:
    await room.place.store.listeners.listen(f"discord:{room.bob.id}", frozenset(kinds))


def offers(place: Channel) -> int:
    return sum(each.label == OFFER for message in place.messages for each in message.buttons)


def notices(place: Channel) -> list[Message]:
    return [each for each in place.messages if "your result is ready" in each.content]


async def test_notices_are_offered_once_below_a_run_of_two_minutes(room: Room) -> None:
    await displayed(room, SHORT_S)
    assert offers(room.thread) == 0
    await displayed(room, LONG_S)
    assert offers(room.thread) == 1
    await displayed(room, LONG_S)
    assert offers(room.thread) == 1
    assert notices(room.thread) == []
    room.server.assert_clean()


async def test_a_run_that_still_waits_has_the_offer_too(room: Room) -> None:
    submission = await room.submit(mode=Mode.TEST, user=room.bob)
    room.place.clock.advance(LONG_S)
    await room.steps.advance(await room.claim(submission), OWNER)
    assert offers(room.thread) == 1


async def test_a_person_with_notifications_on_gets_one_and_only_they_are_mentioned(
    room: Room,
) -> None:
    await wants(room, NotificationKind.RESULT)
    await displayed(room, SHORT_S)
    assert notices(room.thread) == []
    submission = await displayed(room, LONG_S)
    (told,) = notices(room.thread)
    assert told.content.startswith(f"<@{room.bob.id}>, your result is ready: submission #")
    assert f"#{submission.id} kernel.py on vectoradd" in told.content
    assert told.content.endswith("on vectoradd\n🟢 CPU: passed")
    assert told.pings == {room.bob.id}
    assert [each.label for each in told.buttons] == [NO_MORE]
    assert room.thread.messages[-1] is told
    assert offers(room.thread) == 0
    room.server.assert_clean()


async def test_without_a_thread_the_notice_is_in_their_direct_messages(room: Room) -> None:
    await wants(room, NotificationKind.RESULT)
    await displayed(room, LONG_S, in_guild=False)
    assert len(notices(room.bob.dm)) == 1


async def test_a_person_who_cancelled_the_run_is_not_notified(room: Room) -> None:
    await wants(room, NotificationKind.RESULT)
    submission = await room.submit(mode=Mode.TEST, user=room.bob)
    room.place.clock.advance(LONG_S)
    await room.place.store.jobs.request_cancel(submission.id)
    await to_the_end(room, await room.claim(submission))
    assert notices(room.thread) == []


async def test_a_notice_whose_answer_is_lost_is_not_sent_again_by_the_next_process(
    room: Room,
) -> None:
    await wants(room, NotificationKind.RESULT)
    submission = await ran(room, LONG_S)
    show = await room.claim(submission)
    lost = room.server.faults.during(Lost("POST", MESSAGES, 2))  # the first has the report
    with lost as fault, pytest.raises(discord.DiscordServerError):
        await to_the_end(room, show)
    assert fault.hits == 1
    room.server.clock.advance(LATE_S)
    room.place.clock.advance(LATE_S)
    await to_the_end(room, await room.claim(submission))
    assert len(notices(room.thread)) == 1
    assert room.reports(submission, room.thread) == 1
    assert await finished(room, submission)
    room.server.assert_clean()
