"""Suggestions while a person types come from memory, and expire in time."""

from bot.discord.snapshot import OLDEST_S, Snapshot
from bot.domain.board import NOBODY, Access, Viewer, Visibility
from tests.doubles.loop_clock import moved
from tests.doubles.place import Place

BOB = Viewer(NOBODY, frozenset({"discord:2"}))


async def _invited(place: Place, *guests: str) -> None:
    access = Access(Visibility.PRIVATE, guests=frozenset(guests))
    await place.store.boards.restrict(place.board.id, access)
    board = await place.store.boards.get(place.board.id)
    assert board is not None
    await place.store.boards.uninvite(board.id, board.access.guests - frozenset(guests))
    await place.store.boards.invite(board.id, frozenset(guests))


async def test_an_invitation_and_its_end_are_known_after_the_next_reading(place: Place) -> None:
    snapshot = Snapshot()
    assert snapshot.boards_for(BOB, "discord:2") == []
    await _invited(place, "discord:2")
    await snapshot.refresh(place.store)
    assert [each.name for each in snapshot.boards_for(BOB, "discord:2")] == ["vectoradd"]
    await _invited(place)
    await snapshot.refresh(place.store)
    assert snapshot.boards_for(BOB, "discord:2") == []


async def test_a_creator_is_offered_their_private_board(place: Place) -> None:
    await _invited(place)
    snapshot = Snapshot()
    await snapshot.refresh(place.store)
    ada = Viewer(NOBODY, frozenset({"local:ada"}))
    assert [each.name for each in snapshot.boards_for(ada, "local:ada")] == ["vectoradd"]


async def test_without_a_recent_reading_nothing_is_offered(place: Place) -> None:
    snapshot = Snapshot()
    await snapshot.refresh(place.store)
    with moved() as clock:
        assert snapshot.boards_for(BOB, "discord:2")
        await clock.move(OLDEST_S + 1)
        assert not snapshot.boards_for(BOB, "discord:2")
