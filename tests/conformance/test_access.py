"""What every store must do with who may see a board."""

import pytest

from bot.domain.board import Access, NewBoard, SourceVisibility, Visibility
from bot.domain.errors import StoreError, UserError
from bot.domain.ids import BoardId, SubmissionId
from bot.services.lookup import find_submission
from tests.doubles.stored import Scene, make_task

MEMBER, ROLE, PERSON = "discord-guild:123", "discord-role:5", "discord:17"
HIDDEN = Access(Visibility.PRIVATE, MEMBER, SourceVisibility.NEVER, frozenset({ROLE}))


async def test_a_board_is_public_unless_it_was_made_otherwise(scene: Scene) -> None:
    assert scene.board.access == Access()
    new = NewBoard("hidden", ("CPU",), None, scene.ada.id, HIDDEN)
    stored = await scene.store.boards.publish(new, make_task("hidden"), "d")
    assert stored.access == HIDDEN
    assert await scene.store.boards.find("hidden") == stored
    assert stored in await scene.store.boards.all()


async def test_a_changed_rule_leaves_the_guests_alone_and_guests_the_rule(scene: Scene) -> None:
    boards, board = scene.store.boards, scene.board.id
    invited = await boards.invite(board, frozenset({PERSON, ROLE}))
    assert invited.access == Access(guests=frozenset({PERSON, ROLE}))
    again = await boards.invite(board, frozenset({ROLE}))
    assert again == invited
    restricted = await boards.restrict(board, HIDDEN)
    assert restricted.access.guests == {PERSON, ROLE}
    assert (restricted.access.visibility, restricted.access.house) == (Visibility.PRIVATE, MEMBER)
    fewer = await boards.uninvite(board, frozenset({ROLE, "discord:99"}))
    assert fewer.access.guests == {PERSON}
    configured = await boards.configure(board, ("H100",), None)
    assert configured.access == fewer.access
    assert await boards.get(board) == configured
    opened = await boards.restrict(board, Access())
    assert opened.access == Access(guests=frozenset({PERSON}))


async def test_a_board_that_is_not_there_has_no_rule(scene: Scene) -> None:
    boards, nowhere = scene.store.boards, BoardId(999)
    for change in (
        boards.restrict(nowhere, HIDDEN),
        boards.invite(nowhere, frozenset({ROLE})),
        boards.uninvite(nowhere, frozenset({ROLE})),
    ):
        with pytest.raises(StoreError):
            await change


async def test_a_guest_with_letters_that_cannot_be_stored_breaks_nothing(scene: Scene) -> None:
    boards, board = scene.store.boards, scene.board.id
    guests = frozenset({"local:a\0b", "local:\ud800"})
    invited = await boards.invite(board, guests)
    assert invited.access.guests == {"local:a\u2400b", "local:\ufffd"}
    assert not (await boards.uninvite(board, guests)).access.guests


@pytest.mark.parametrize("number", [1 << 63, 10**19, -(1 << 63) - 1, (1 << 63) - 1])
async def test_a_number_that_no_submission_can_have_is_unknown(scene: Scene, number: int) -> None:
    with pytest.raises(UserError, match=f"no submission {number}"):
        await find_submission(scene.store, SubmissionId(number))
