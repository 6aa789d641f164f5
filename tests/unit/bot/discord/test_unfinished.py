"""What a killed process had begun is done by the next one, or the person is told."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any
from unittest.mock import AsyncMock, Mock

import discord
import pytest

from bot.discord.channels import SubmissionDisplay
from bot.discord.interaction_claims import FIRST_LEASE
from bot.discord.submission_thread import run_displays
from bot.discord.unfinished import EXPIRED_FOR, MAX_ATTEMPTS, resume_unfinished
from bot.domain.errors import StoreError
from bot.domain.publication import PublishRequest
from bot.domain.records import InteractionRequest
from bot.domain.submission import NewDisplay, Submission
from bot.services.publishing.publish import publish
from tests.doubles.discord.limits import CALLBACK
from tests.doubles.discord.model.channels import Channel
from tests.doubles.discord.model.files import File
from tests.doubles.discord.model.interactions import Interaction
from tests.doubles.discord.model.messages import Message
from tests.doubles.discord.rest.faults import Fault
from tests.doubles.discord_room import LEASE, Room
from tests.doubles.discord_room import room as a_room
from tests.doubles.factories import make_task

KERNEL = File("kernel.py", b"x = 1\n")
COMMAND = "leaderboard submit test"
TASKS = ("CommandTree-invoker", "discord-ui")
NEED_TOKENS = ("/webhooks/", "/interactions/")
SILENT_S = (FIRST_LEASE + EXPIRED_FOR).total_seconds()


@pytest.fixture
async def room() -> AsyncIterator[Room]:
    async with a_room(commands=True) as found:
        yield found
        found.server.assert_clean(allowing=[40060])


async def killed(room: Room, channel: Channel | None = None) -> Interaction:
    """Alice's command; its process ended once Discord had acknowledged it."""
    unanswered = Fault("POST", CALLBACK, status=None, carried_out=True)
    with room.server.faults.during(unanswered):
        name = room.place.board.name
        run = room.alice.begin_slash(COMMAND, channel, script=KERNEL, leaderboard_name=name)
        await room.server.wait_for(lambda: unanswered.hits)
        await end_all()
    assert run.message.loading
    return run


def at_work() -> list[asyncio.Task[Any]]:
    """What this process does of what people ask."""
    return [each for each in asyncio.all_tasks() if each.get_name().startswith(TASKS)]


async def end_all() -> None:
    doomed = at_work()
    assert doomed
    for task in doomed:
        task.cancel()
    await asyncio.gather(*doomed, return_exceptions=True)


async def stored(room: Room) -> tuple[Submission, ...]:
    return await room.place.store.submissions.to(room.place.board.id)


async def taken_up(room: Room, after_s: float = SILENT_S) -> int:
    room.place.clock.advance(after_s)
    return await resume_unfinished(room.client, room.context)


async def converse(room: Room) -> None:
    """Store that Alice has begun direct messages."""
    person = await room.place.store.people.ensure(f"discord:{room.alice.id}", "alice")
    await room.place.store.displays.save_conversation(person.id, str(room.alice.dm.id))


async def direct(room: Room) -> Message:
    """What alice is written to directly."""
    return await room.alice.sees(lambda _: True, room.alice.dm)


async def is_settled(room: Room) -> bool:
    """Whether nothing of what was asked is kept any more, once all work is done."""
    await asyncio.gather(*at_work())
    rows = room.place.store.interactions
    return await rows.claim_unfinished("discord", "a test", LEASE, timedelta(days=-9)) == ()


async def test_the_next_process_does_it_and_says_so_where_it_was_asked(room: Room) -> None:
    run = await killed(room)
    assert await stored(room) == ()
    assert await taken_up(room, SILENT_S - 1) == 0
    assert await taken_up(room, 1) == 1
    assert "Submission #" in (await run.final()).text
    assert len(await stored(room)) == 1
    assert not run.followups
    assert await is_settled(room)
    assert await taken_up(room, 3600) == 0


async def test_what_was_asked_in_direct_messages_is_done_as_well(room: Room) -> None:
    run = await killed(room, room.alice.dm)
    assert await taken_up(room) == 1
    assert "is stored: test on CPU" in (await run.final()).text
    (made,) = await stored(room)
    shown = await room.place.store.displays.find(made.id)
    assert shown is not None
    assert SubmissionDisplay.model_validate_json(shown.place).channel == room.alice.dm.id


async def test_a_file_that_is_gone_is_told(room: Room) -> None:
    run = await killed(room)
    room.server.world.cdn.remove(KERNEL.filename)
    await taken_up(room)
    said = (await run.final()).text
    assert "nothing was submitted" in said
    assert "run the command again" in said
    assert await stored(room) == ()
    assert await is_settled(room)


async def test_when_the_token_has_expired_the_display_shows_the_submission(room: Room) -> None:
    await killed(room)
    room.server.forget()
    room.server.clock.advance(901)
    assert await taken_up(room, 901) == 1
    assert await is_settled(room)
    assert room.alice.dms == []
    async with run_displays(room.client, room.context):
        await room.alice.sees("Submission #", room.channel)
    assert len(await stored(room)) == 1
    with_token = [each for each in room.server.requests if each.route.startswith(NEED_TOKENS)]
    assert with_token == []


async def test_a_command_that_was_never_acknowledged_is_done_and_displayed(room: Room) -> None:
    with room.server.faults.during(Fault("POST", CALLBACK, status=None)) as unanswered:
        room.alice.begin_slash(COMMAND, script=KERNEL, leaderboard_name=room.place.board.name)
        await room.server.wait_for(lambda: unanswered.hits)
        await end_all()
    room.server.clock.advance(60)
    await taken_up(room)
    assert await is_settled(room)
    assert room.alice.dms == []
    async with run_displays(room.client, room.context):
        await room.alice.sees("Submission #", room.channel)
    assert len(await stored(room)) == 1
    assert {each.code for each in room.server.refused} == {10062, 10015}
    room.server.forget()


async def test_what_ends_every_process_is_given_up_and_told(room: Room) -> None:
    run = await killed(room)
    interactions = room.place.store.interactions
    for _ in range(MAX_ATTEMPTS - 1):  # the first process was the one that was killed
        room.place.clock.advance(LEASE.total_seconds() + SILENT_S)
        (found,) = await interactions.claim_unfinished("discord", "x", FIRST_LEASE, EXPIRED_FOR)
        assert await interactions.begin(found.id, "x", FIRST_LEASE)
    await taken_up(room)
    assert f"started {MAX_ATTEMPTS} times" in (await run.final()).text
    assert await stored(room) == ()
    assert await is_settled(room)


async def test_a_command_whose_submission_is_stored_is_never_reported_as_failed(
    room: Room,
) -> None:
    run, key = await killed(room), ""
    interactions = room.place.store.interactions
    for _ in range(MAX_ATTEMPTS - 1):
        room.place.clock.advance(LEASE.total_seconds() + SILENT_S)
        (found,) = await interactions.claim_unfinished("discord", "x", FIRST_LEASE, EXPIRED_FOR)
        assert await interactions.begin(found.id, "x", FIRST_LEASE)
        key = found.id
    person = (await room.place.store.people.ensure(f"discord:{room.alice.id}", "alice")).id
    shown = SubmissionDisplay(
        channel=room.channel.id, user=room.alice.id, in_guild=True, answer=key
    )
    display = NewDisplay("discord", shown.model_dump_json())
    submission = await room.place.submit(person, key=key, display=display)
    await taken_up(room)
    assert run.message.loading
    assert await is_settled(room)
    async with run_displays(room.client, room.context):
        assert f"Submission #{submission.id}" in (await run.final()).text
    assert len(await stored(room)) == 1


async def test_a_process_that_ends_before_it_has_started_a_command_costs_no_attempt(
    room: Room,
) -> None:
    run = await killed(room)
    for _ in range(2 * MAX_ATTEMPTS):
        room.place.clock.advance(LEASE.total_seconds() + SILENT_S)
        found = await room.place.store.interactions.claim_unfinished(
            "discord", "x", FIRST_LEASE, EXPIRED_FOR
        )
        assert len(found) == 1
    await taken_up(room)
    assert "is stored: test on CPU" in (await run.final()).text


async def test_what_is_older_than_a_day_is_given_up_and_told(room: Room) -> None:
    await killed(room)
    await converse(room)
    await taken_up(room, 86_401)
    assert "it is more than a day old" in (await direct(room)).text
    assert await is_settled(room)


async def test_a_person_who_has_begun_no_direct_messages_gets_none(room: Room) -> None:
    await killed(room)
    await taken_up(room, 86_401)
    assert room.alice.dms == []
    assert await is_settled(room)


async def test_nothing_is_done_for_who_has_left_the_server(room: Room) -> None:
    await killed(room)
    del room.guild.members[room.alice.id]
    await taken_up(room)
    assert await stored(room) == ()
    assert await is_settled(room)
    room.server.forget()


@pytest.mark.parametrize(
    "away",
    [
        discord.DiscordServerError(Mock(status=503, reason="away"), "away"),
        discord.HTTPException(Mock(status=401, reason="another token"), "Unauthorized"),
        TimeoutError(),
    ],
)
async def test_while_discord_is_away_it_waits_and_no_try_is_lost(
    room: Room, monkeypatch: pytest.MonkeyPatch, away: Exception
) -> None:
    run = await killed(room)
    with monkeypatch.context() as patch:
        patch.setattr(room.client.http, "get_member", AsyncMock(side_effect=away))
        for _ in range(MAX_ATTEMPTS + 1):
            assert await taken_up(room, LEASE.total_seconds() + SILENT_S) == 1
    assert await taken_up(room, LEASE.total_seconds() + SILENT_S) == 1
    assert "Submission #" in (await run.final()).text


async def test_what_the_database_was_away_for_is_done_in_the_same_message(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        gone = AsyncMock(side_effect=StoreError("gone"))
        patch.setattr(room.place.store.submissions, "add", gone)
        name = room.place.board.name
        run = await room.alice.slash(COMMAND, script=KERNEL, leaderboard_name=name)
        assert "Your request is saved" in (await run.final()).text
        await asyncio.gather(*at_work())
    assert await taken_up(room, LEASE.total_seconds() + SILENT_S) == 1
    await asyncio.gather(*at_work())
    assert "Submission #" in run.message.text
    assert not run.followups
    assert len(await stored(room)) == 1


async def test_what_was_done_and_could_not_be_noted_is_neither_made_nor_told_twice(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        gone = AsyncMock(side_effect=StoreError("gone"))
        patch.setattr(room.place.store.interactions, "finish", gone)
        name = room.place.board.name
        run = await room.alice.slash(COMMAND, script=KERNEL, leaderboard_name=name)
        told = (await run.final()).text
        await asyncio.gather(*at_work())
    assert await taken_up(room, LEASE.total_seconds() + SILENT_S) == 1
    assert await is_settled(room)
    assert len(await stored(room)) == 1
    assert run.message.text == told
    assert not run.followups


async def test_rights_are_those_of_when_it_is_done(room: Room) -> None:
    admin = await room.admin_role()
    room.guild.members[room.alice.id].roles.add(admin.id)
    await (await room.alice.slash("leaderboard list")).final()
    who = await room.context.store.people.ensure(f"discord:{room.alice.id}", "alice")
    assert (await room.place.store.rights.of(who.id)).is_admin
    run = await killed(room)
    room.guild.members[room.alice.id].roles.remove(admin.id)
    await taken_up(room)
    await run.final()
    (made,) = await stored(room)
    assert made.person == who.id
    assert not (await room.place.store.rights.of(who.id)).is_admin


async def test_a_message_is_submitted_again_from_its_menu(room: Room) -> None:
    heading = f"#!PODIUM leaderboard {room.place.board.name}\n".encode()
    message = await room.alice.send("", File("mine.py", heading + b"x = 1\n"))
    with room.server.faults.during(
        Fault("POST", CALLBACK, status=None, carried_out=True)
    ) as unanswered:
        asking = asyncio.create_task(room.alice.message_command("Submit this file", message))
        await room.server.wait_for(lambda: unanswered.hits)
        await end_all()
        run = await asking
    await taken_up(room)
    assert "ranked on CPU" in (await run.final()).text
    (made,) = await stored(room)
    assert made.file_name == "mine.py"


async def test_the_click_of_a_question_is_done_with_the_choice(room: Room) -> None:
    place = room.place
    task = make_task(name="wide", gpus=("CPU", "L4"))
    wide = await publish(place.store, place.clock, PublishRequest(place.ada), task)
    asked = await room.alice.slash(COMMAND, script=KERNEL, leaderboard_name="wide")
    menus = await asked.final()
    await room.alice.select(menus.select("GPU types: CPU to L4"), ["L4"])
    with room.server.faults.during(
        Fault("POST", CALLBACK, status=None, carried_out=True)
    ) as unanswered:
        clicking = asyncio.create_task(room.alice.click(menus, "Submit"))
        await room.server.wait_for(lambda: unanswered.hits)
        await end_all()
        run = await clicking
    await taken_up(room)
    await room.server.wait_for(lambda: "test on L4" in menus.text)
    assert run.followups == []
    (made,) = await place.store.submissions.to(wide.board.id)
    assert made.gpus == ("L4",)


async def test_a_bug_with_one_does_not_hold_up_the_next(room: Room) -> None:
    moment: datetime = room.place.clock.now()
    broken = InteractionRequest("discord:1", "discord", "no JSON", "", moment - timedelta(hours=1))
    assert await room.place.store.interactions.claim(broken, "x", FIRST_LEASE)
    run = await killed(room)
    await taken_up(room)
    assert "Submission #" in (await run.final()).text
