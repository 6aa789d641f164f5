from datetime import timedelta

import pytest

from bot.domain.board import Access, SeasonRules, Viewer, Visibility
from bot.domain.errors import UserError
from bot.domain.ids import SubmissionId
from bot.services.lookup import (
    find_board,
    find_submission,
    own_board,
    own_submission,
    visible_board,
    visible_boards,
    visible_submission,
)
from tests.doubles.place import Place


async def test_what_is_there_is_found(place: Place) -> None:
    submission = await place.submit()
    assert await find_board(place.store, Viewer(place.ada), "vectoradd") == place.board
    assert await find_submission(place.store, submission.id) == submission


async def test_what_is_not_there_is_refused_with_what_to_do(place: Place) -> None:
    with pytest.raises(UserError, match="did you mean vectoradd") as board:
        await find_board(place.store, Viewer(place.ada), "vectorad")
    with pytest.raises(UserError, match="check the number") as submission:
        await find_submission(place.store, SubmissionId(99))
    assert (board.value.code, submission.value.code) == ("unknown-board", "unknown-submission")


async def hide(place: Place) -> Viewer:
    """Make the board private; gives somebody to whom it does not exist."""
    await place.store.boards.restrict(place.board.id, Access(Visibility.PRIVATE))
    return Viewer(await place.person("bob"), frozenset({"local:bob"}))


async def test_a_hidden_board_is_refused_like_one_that_is_not_there(place: Place) -> None:
    bob = await hide(place)
    for name in ("vectoradd", "nothing"):
        with pytest.raises(UserError) as refusal:
            await find_board(place.store, bob, name)
        assert refusal.value.message == f"no board named {name!r}; no board exists yet"
        assert refusal.value.code == "unknown-board"
        with pytest.raises(UserError, match="no board named"):
            await own_board(place.store, bob, name)
    assert await visible_boards(place.store, bob) == ()
    await place.store.boards.invite(place.board.id, frozenset({"local:bob"}))
    (seen,) = await visible_boards(place.store, bob)
    assert (await find_board(place.store, bob, "vectoradd")) == seen


async def test_a_board_that_opens_later_is_refused_with_its_date(place: Place) -> None:
    bob = Viewer(await place.person("bob"))
    opens_at = place.clock.now() + timedelta(hours=1)
    other = await place.submit()
    board = await place.store.boards.set_rules(place.board.id, SeasonRules(opens_at))
    for find in (
        find_board(place.store, bob, "vectoradd"),
        visible_board(place.store, bob, board.id),
        own_board(place.store, bob, "vectoradd"),
    ):
        with pytest.raises(UserError, match="'vectoradd' opens at 2026") as refusal:
            await find
        assert refusal.value.code == "not-open"
    assert await visible_boards(place.store, bob) == ()
    with pytest.raises(UserError, match="there is no submission"):
        await visible_submission(place.store, bob, other.id)
    assert await find_board(place.store, Viewer(place.board.creator), "vectoradd") == board
    await place.store.boards.restrict(board.id, Access(Visibility.PRIVATE))
    with pytest.raises(UserError, match="no board named"):
        await find_board(place.store, bob, "vectoradd")
    await place.store.boards.restrict(board.id, Access())
    place.clock.advance(3600)
    assert (await find_board(place.store, bob, "vectoradd")).id == board.id


async def test_on_a_hidden_board_there_are_none_but_one_s_own_submissions(place: Place) -> None:
    own = await place.submit(await place.person("bob"))
    other = await place.submit()
    bob = await hide(place)
    assert await visible_submission(place.store, bob, own.id) == own
    for number in (other.id, SubmissionId(999)):
        with pytest.raises(UserError, match=f"there is no submission {number}") as refusal:
            await own_submission(place.store, bob, number)
        assert refusal.value.code == "unknown-submission"
    await place.store.boards.invite(place.board.id, frozenset({"local:bob"}))
    assert await visible_submission(place.store, bob, other.id) == other
    with pytest.raises(UserError, match="another person"):
        await own_submission(place.store, bob, other.id)


async def test_only_the_creator_and_admins_have_a_board(place: Place) -> None:
    bob = await place.person("bob")
    with pytest.raises(UserError, match="belongs to another person"):
        await own_board(place.store, Viewer(bob), "vectoradd")
    for viewer in (Viewer(place.ada), Viewer(bob, sees_all=True)):
        assert await own_board(place.store, viewer, "vectoradd") == place.board
