"""Tests of invite links apart from their pages: how many there may be, and for whom."""

import pytest

from bot.domain.board import Access, Viewer, Visibility
from bot.domain.errors import UserError
from bot.services.invites import create_invite_link, join_board
from tests.doubles.clock import ManualClock
from tests.doubles.memory_store import MemoryStore
from tests.doubles.place import Place, make_place

TWO_DAYS_S = 2 * 86_400


@pytest.fixture
async def place(memory_store: MemoryStore, clock: ManualClock) -> Place:
    return await make_place(memory_store, clock)


async def test_a_board_has_a_limit_of_links(place: Place) -> None:
    creator = Viewer(place.board.creator)
    for _ in range(50):
        await create_invite_link(place.store, place.clock, creator, "vectoradd", days=1, most=1)
    with pytest.raises(UserError, match="revoke one first"):
        await create_invite_link(place.store, place.clock, creator, "vectoradd", days=1, most=1)
    assert len(await place.store.invites.of(place.board.id)) == 50
    place.clock.advance(TWO_DAYS_S)
    await create_invite_link(place.store, place.clock, creator, "vectoradd", days=1, most=1)


async def test_a_board_of_a_server_is_joined_only_by_its_members(place: Place) -> None:
    creator = Viewer(place.board.creator)
    _, code = await create_invite_link(
        place.store, place.clock, creator, "vectoradd", days=1, most=1
    )
    house = Access(visibility=Visibility.PRIVATE, house="discord-guild:5")
    await place.store.boards.restrict(place.board.id, house)
    eve = await place.person("eve")
    with pytest.raises(UserError, match="members of its Discord server"):
        await join_board(place.store, Viewer(eve), code)
    member = Viewer(eve, frozenset({"local:eve", "discord-guild:5"}))
    assert (await join_board(place.store, member, code)).name == "vectoradd"
