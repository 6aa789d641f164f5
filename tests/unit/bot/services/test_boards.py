import pytest

from bot.domain.board import NOBODY, Access, Viewer, Visibility
from bot.domain.errors import UserError
from bot.services.boards import board, list_boards
from tests.doubles.place import Place

ANYBODY = Viewer(NOBODY)


async def test_a_board_comes_with_its_people_and_best_score(place: Place) -> None:
    (before,) = await list_boards(place.store, ANYBODY)
    assert (before.participants, before.best) == (0, ())
    ranked = await place.submit(await place.person("bob"))
    await place.judged(ranked)
    found = await board(place.store, ANYBODY, "vectoradd")
    assert (found.board.name, found.participants) == ("vectoradd", 1)
    assert [(each.submission, each.gpu) for each in found.best] == [(ranked.id, "CPU")]


async def test_a_board_that_one_may_not_see_is_not_among_them(place: Place) -> None:
    await place.store.boards.restrict(place.board.id, Access(Visibility.PRIVATE))
    assert await list_boards(place.store, ANYBODY) == ()
    with pytest.raises(UserError, match="no board named"):
        await board(place.store, ANYBODY, "vectoradd")
    assert len(await list_boards(place.store, Viewer(place.ada))) == 1
