import pytest

from bot.domain.errors import UserError
from bot.domain.ids import SubmissionId
from bot.services.lookup import find_board, find_submission
from tests.doubles.place import Place


async def test_what_is_there_is_found(place: Place) -> None:
    submission = await place.submit()
    assert await find_board(place.store, "vectoradd") == place.board
    assert await find_submission(place.store, submission.id) == submission


async def test_what_is_not_there_is_refused_with_what_to_do(place: Place) -> None:
    with pytest.raises(UserError, match="did you mean vectoradd") as board:
        await find_board(place.store, "vectorad")
    with pytest.raises(UserError, match="your history lists") as submission:
        await find_submission(place.store, SubmissionId(99))
    assert (board.value.code, submission.value.code) == ("unknown-board", "unknown-submission")
