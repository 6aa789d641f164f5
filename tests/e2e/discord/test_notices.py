"""News for those who asked: records, lost ranks and deadlines, each told once."""

import signal
from datetime import UTC, datetime, timedelta

import pytest

from tests.doubles.discord.model.channels import Channel
from tests.doubles.discord.model.messages import Message
from tests.doubles.discord.rest.faults import Fault
from tests.doubles.discord.users.filling import Value
from tests.doubles.discord.users.person import Person
from tests.e2e.discord.scene import Scene

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.postgres, pytest.mark.slow]

NEWS_S = 30
OPTIONS = "This command's options switch each on or off."
NOT_YET = (
    "\nI may not begin direct messages with you. To get these, open a direct message to me and use "
    "any command in it."
)
CLOSED_DMS = 50007
MESSAGES = "/channels/{channel_id}/messages"


async def _said(
    who: Person, command: str, where: Channel | None = None, /, **options: Value
) -> str:
    return (await (await who.slash(command, where, **options)).final()).text


def _news(who: Person, where: Channel, words: str) -> list[Message]:
    return [each for each in who.messages(where) if words in each.text]


async def _ranked(stage: Scene, who: Person, time_us: float) -> None:
    run = await stage.submit(who, f"time_us={time_us}", name=f"t{time_us}.py")
    number = (await run.final()).text.split("#")[1].split()[0]
    thread = await who.sees_thread(f"identity: {who.name.title()}", within=NEWS_S)
    await who.sees(f"submission #{number}:", thread, within=NEWS_S)


async def test_a_channel_hears_of_records_and_a_person_of_a_lost_rank(stage: Scene) -> None:
    hall = stage.guild.create_channel("records")
    assert "records" in await _said(stage.carol, "admin notices", channel=hall, record=True)
    told = await _said(stage.alice, "profile notices", lost_rank=True)
    wanted = "You get notifications about: ranks that you lose. " + OPTIONS
    assert told == wanted + NOT_YET
    assert await _said(stage.alice, "profile notices", stage.alice.dm) == wanted
    await _ranked(stage, stage.alice, 50)
    first = await stage.bob.sees("Record on identity (CPU)", hall, within=NEWS_S)
    assert "Alice takes 50.00 µs" in first.text
    await _ranked(stage, stage.bob, 40)
    second = await stage.bob.sees("Bob takes 40.00 µs", hall, after=first, within=NEWS_S)
    assert "1.25x (1.22 to 1.28) as fast as" in second.text
    assert not second.pings
    lost = await stage.alice.sees("from rank 1 to 2", stage.alice.dm, within=NEWS_S)
    assert "Bob takes 40.00 µs" in lost.text
    await _ranked(stage, stage.bob, 45)
    assert len(_news(stage.bob, hall, "Record on")) == 2
    assert stage.bob.dms == []
    stage.server.assert_clean()


async def test_who_takes_the_wish_back_hears_no_more(stage: Scene) -> None:
    told = await _said(stage.alice, "profile notices", stage.alice.dm, lost_rank=False)
    assert told == "You get notifications about: nothing. " + OPTIONS
    before = len(stage.alice.dms)
    await _ranked(stage, stage.bob, 30)
    hall = next(each for each in stage.guild.channels if each.name == "records")
    await stage.bob.sees("Bob takes 30.00 µs", hall, within=NEWS_S)
    assert len(stage.alice.dms) == before
    stage.server.assert_clean()


async def _closes(stage: Scene, hours: int) -> str:
    """The board's deadline is moved; gives the words by which it is told of."""
    soon = (datetime.now(UTC) + timedelta(hours=hours)).replace(second=0, microsecond=0)
    update = {"leaderboard_name": "identity", "deadline": f"{soon:%Y-%m-%d %H:%M}"}
    await _said(stage.carol, "leaderboard update", **update)
    shown = f"<t:{int(soon.timestamp())}:F> (<t:{int(soon.timestamp())}:R>)"
    return f"Leaderboard identity closes {shown}."


async def test_a_deadline_is_told_a_day_ahead_and_once_and_again_when_it_moves(
    stage: Scene,
) -> None:
    await _said(stage.alice, "profile notices", stage.alice.dm, deadline=True)
    first = await _closes(stage, 3)
    await stage.alice.sees(first, stage.alice.dm, within=NEWS_S)
    await stage.bot.stop(signal.SIGKILL)
    await stage.bot.start(60)
    moved = await _closes(stage, 5)
    await stage.alice.sees(moved, stage.alice.dm, within=NEWS_S)
    await _closes(stage, 500)
    await _ranked(stage, stage.bob, 60)
    assert len(_news(stage.alice, stage.alice.dm, "Leaderboard identity closes")) == 2
    stage.server.assert_clean()


async def test_a_channel_where_the_bot_may_not_write_is_refused_at_once(stage: Scene) -> None:
    told = await _said(stage.dana, "admin notices", channel=stage.submissions, record=True)
    assert "Leaderboard Admin" in told
    stage.server.assert_clean()


async def test_a_person_without_direct_messages_is_given_up(stage: Scene) -> None:
    await _said(stage.alice, "profile notices", stage.alice.dm, record=True)
    await _said(stage.bob, "profile notices", stage.bob.dm, lost_rank=True)
    stage.alice.dms_open = False
    try:
        await _ranked(stage, stage.carol, 20)
        await stage.bob.sees("from rank 1 to 2", stage.bob.dm, within=NEWS_S)
        refused = await stage.server.wait_for(lambda: stage.server.refused, NEWS_S)
        assert len(refused) == 1
    finally:
        stage.alice.dms_open = True
    stage.server.assert_clean(allowing=(CLOSED_DMS,))
    stage.server.forget()


async def test_news_outlives_a_discord_that_is_away(stage: Scene) -> None:
    hall = next(each for each in stage.guild.channels if each.name == "records")
    with stage.server.faults.during(Fault("POST", MESSAGES, 500)) as fault:
        run = await stage.submit(stage.bob, "time_us=10", name="away.py")
        await run.final()
        await stage.server.wait_for(lambda: fault.hits > 5, NEWS_S)
    await stage.bob.sees("Bob takes 10.00 µs", hall, within=90)
    stage.server.assert_clean()


async def test_after_a_kill_in_the_middle_of_a_delivery_it_is_told_once(stage: Scene) -> None:
    hall = next(each for each in stage.guild.channels if each.name == "records")
    await _said(stage.alice, "profile notices", stage.alice.dm, record=False)
    lost = Fault("POST", MESSAGES, None, carried_out=True)
    with stage.server.faults.during(lost):
        run = await stage.submit(stage.bob, "time_us=5", name="killed.py")
        await run.final()
        await stage.bob.sees("Bob takes 5.00", hall, within=NEWS_S)
        await stage.bot.stop(signal.SIGKILL)
    await stage.bot.start()
    history = f"/channels/{hall.id}/messages"

    def tried_again() -> bool:
        """Whether the next process has got as far as reading back, or has sent it once more."""
        read = any(each.method == "GET" and history in each.path for each in stage.server.requests)
        return read or len(_news(stage.bob, hall, "Bob takes 5.00")) > 1

    await stage.server.wait_for(tried_again, 90)
    await _ranked(stage, stage.bob, 4)
    await stage.bob.sees("Bob takes 4.00", hall, within=NEWS_S)
    assert len(_news(stage.bob, hall, "Bob takes 5.00")) == 1
    stage.server.assert_clean()
