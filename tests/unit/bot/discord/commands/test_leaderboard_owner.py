"""A board is deleted only if its archive has arrived."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.doubles.discord.limits import FOLLOWUPS
from tests.doubles.discord.rest.faults import Fault
from tests.doubles.discord_room import Room
from tests.doubles.discord_room import room as a_room

ANSWER = f"{FOLLOWUPS}/messages/{{message_id}}"


@pytest.fixture
async def room() -> AsyncIterator[Room]:
    async with a_room(commands=True) as found:
        yield found
        found.server.assert_clean(allowing=[40060, 50027])


async def test_a_board_whose_archive_cannot_be_sent_is_not_deleted(room: Room) -> None:
    admin = await room.admin_role()
    carol = room.server.user("carol", room.guild, roles=[admin])
    carol.goes_to(room.channel)
    name = room.place.board.name
    form = await carol.slash("leaderboard delete", leaderboard_name=name)
    expired = [Fault(*each, 401, code=50027) for each in (("PATCH", ANSWER), ("POST", FOLLOWUPS))]
    for each in expired:
        room.server.faults.add(each)
    await carol.modal(form, {"The board's exact name": name})
    await room.server.wait_for(lambda: any(each.hits for each in expired))
    names = ("CommandTree-invoker", "discord-ui")
    working = [each for each in asyncio.all_tasks() if each.get_name().startswith(names)]
    await asyncio.gather(*working)
    room.server.faults.lift()
    assert [each.name for each in await room.place.store.boards.all()] == [name]
    run = await carol.slash("leaderboard list")
    text = (await run.final()).text
    assert text.startswith("-# Your earlier form")
    assert "nothing was deleted" in text
