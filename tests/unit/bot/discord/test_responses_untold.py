"""An outcome that could not be sent begins the next answer to the same person, once."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import pytest

from bot.discord.responses import NOT_SENT, NOT_STORED, InteractionReply
from bot.discord.unfinished import EXPIRED_FOR, resume_unfinished
from tests.doubles.discord.limits import CALLBACK, FOLLOWUPS
from tests.doubles.discord.model.files import File
from tests.doubles.discord.model.interactions import Interaction
from tests.doubles.discord.rest.faults import Fault
from tests.doubles.discord.users.person import Person
from tests.doubles.discord_room import LEASE, Room
from tests.doubles.discord_room import room as a_room

ANSWER = f"{FOLLOWUPS}/messages/{{message_id}}"
KERNEL = File("kernel.py", b"x = 1\n")
TASKS = ("CommandTree-invoker", "discord-ui")
SETTLED_S = (LEASE + EXPIRED_FOR).total_seconds()


@pytest.fixture
async def room() -> AsyncIterator[Room]:
    async with a_room(commands=True) as found:
        yield found
        found.server.assert_clean(allowing=[40060, 10015, 10062, 50027])


def handlers() -> list[asyncio.Task[object]]:
    return [each for each in asyncio.all_tasks() if each.get_name().startswith(TASKS)]


@contextmanager
def expired(room: Room) -> Iterator[None]:
    """Let Discord accept acknowledgements, but no answer after them."""
    faults = [Fault(*each, 401, code=50027) for each in (("PATCH", ANSWER), ("POST", FOLLOWUPS))]
    with room.server.faults.during(faults[0]), room.server.faults.during(faults[1]):
        yield


async def unanswered(room: Room, who: Person, command: str, **options: object) -> Interaction:
    with expired(room):
        run = who.begin_slash(command, **options)  # type: ignore[arg-type]
        await room.server.wait_for(lambda: run.answered is not None)
        await asyncio.wait_for(asyncio.gather(*handlers()), 15)
    assert run.message.loading
    assert who.dms == []
    return run


async def answered(who: Person, command: str, **options: object) -> str:
    run = await who.slash(command, **options)  # type: ignore[arg-type]
    text = (await run.final()).text
    await asyncio.gather(*handlers())
    return text


async def killed(room: Room, begin: Interaction, fault: Fault) -> None:
    await room.server.wait_for(lambda: fault.hits)
    doomed = handlers()
    for each in doomed:
        each.cancel()
    await asyncio.gather(*doomed, return_exceptions=True)
    assert begin.answered is not None


async def test_the_next_answer_to_the_same_person_begins_with_it_once(room: Room) -> None:
    made = re.search(r"Your token (\d+)", await answered(room.alice, "profile link"))
    assert made is not None
    await unanswered(room, room.alice, "profile revoke", id=int(made[1]))
    assert "revoke" not in await answered(room.bob, "profile tokens")
    text = await answered(room.alice, "profile tokens")
    assert re.match(r"-# Your earlier command .*revoke.*<t:\d+:R>:\nToken \d+ is revoked", text)
    assert "You have no token" in text
    assert "Your earlier" not in await answered(room.alice, "profile tokens")


async def test_no_secret_is_stored_in_it(room: Room) -> None:
    await unanswered(room, room.alice, "profile link", label="laptop")
    said = [each.outcome.said for each in room.place.store.interactions._untold.values()]
    assert len(said) == 1
    assert "podium_" not in said[0]
    text = await answered(room.alice, "profile tokens")
    assert NOT_STORED in text
    assert re.search(r"Your token \d+ \(laptop\)", text)


async def test_an_error_is_told_and_of_a_report_only_that_it_was_not_sent(room: Room) -> None:
    await unanswered(room, room.alice, "profile revoke", id=9)
    await unanswered(room, room.alice, "leaderboard list")
    first = await answered(room.alice, "profile tokens")
    assert "profile revoke" in first
    assert "⚠️" in first
    second = await answered(room.alice, "profile tokens")
    assert "leaderboard list" in second
    assert NOT_SENT in second


async def test_an_outcome_found_by_the_next_process_is_told(room: Room) -> None:
    fault = Fault("POST", CALLBACK, status=None, carried_out=True)
    with room.server.faults.during(fault):
        await killed(room, room.alice.begin_slash("profile link", label="laptop"), fault)
    for clock in (room.place.clock, room.server.clock):
        clock.advance(901)
    assert await resume_unfinished(room.client, room.context) == 1
    await asyncio.gather(*handlers())
    text = await answered(room.alice, "profile tokens")
    assert re.search(r"Your token \d+ \(laptop\)", text)


async def test_a_command_that_is_too_old_is_told(room: Room) -> None:
    fault = Fault("POST", CALLBACK, status=None, carried_out=True)
    with room.server.faults.during(fault):
        await killed(room, room.alice.begin_slash("profile link"), fault)
    for clock in (room.place.clock, room.server.clock):
        clock.advance(86_401)
    assert await resume_unfinished(room.client, room.context) == 1
    assert "more than a day old" in await answered(room.alice, "profile tokens")


async def test_an_answer_that_is_killed_after_it_was_sent_says_it_once_more_in_its_place(
    room: Room,
) -> None:
    await unanswered(room, room.alice, "profile revoke", id=9)
    fault = Fault("PATCH", ANSWER, status=None, carried_out=True)
    with room.server.faults.during(fault):
        run = room.alice.begin_slash("profile tokens")
        await killed(room, run, fault)
    assert "profile revoke" in run.message.text
    assert "Your earlier" not in await answered(room.alice, "profile tokens")
    room.place.clock.advance(SETTLED_S)
    assert await resume_unfinished(room.client, room.context) == 1
    await asyncio.gather(*handlers())
    assert "profile revoke" in run.message.text
    assert run.followups == []
    assert "Your earlier" not in await answered(room.alice, "profile tokens")


async def test_an_answer_that_is_not_sent_either_leaves_it_to_the_next(room: Room) -> None:
    await unanswered(room, room.alice, "profile revoke", id=8)
    await unanswered(room, room.alice, "leaderboard list")
    assert "profile revoke" in await answered(room.alice, "profile tokens")
    assert "leaderboard list" in await answered(room.alice, "profile tokens")


async def test_beside_a_submission_it_has_its_own_message(room: Room) -> None:
    await unanswered(room, room.alice, "profile revoke", id=9)
    name = room.place.board.name
    run = await room.alice.slash("leaderboard submit test", script=KERNEL, leaderboard_name=name)
    assert (await run.final()).text.startswith("Submission #")
    await asyncio.gather(*handlers())
    (more,) = run.followups
    assert "profile revoke" in more.text


async def test_beside_a_long_answer_it_has_its_own_message(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    await unanswered(room, room.alice, "profile revoke", id=9)
    say = InteractionReply.say

    async def long(answer: InteractionReply, text: str) -> None:
        await say(answer, text.ljust(1990, "."))

    monkeypatch.setattr(InteractionReply, "say", long)
    run = await room.alice.slash("profile tokens")
    assert "profile revoke" in (await run.final()).text
    await asyncio.gather(*handlers())
    (more,) = run.followups
    assert more.text.startswith("You have no token")


async def test_it_is_forgotten_after_a_day(room: Room) -> None:
    await unanswered(room, room.alice, "profile revoke", id=9)
    for clock in (room.place.clock, room.server.clock):
        clock.advance(86_400)
    assert "Your earlier" not in await answered(room.alice, "profile tokens")
