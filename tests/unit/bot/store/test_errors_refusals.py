"""Refusals that people read."""

import pytest

from bot.domain.errors import UserError
from bot.domain.ids import SubmissionId
from bot.store.errors import board_exists, require_number


def test_a_taken_name_is_named_with_what_to_do_next() -> None:
    refusal = board_exists("matmul")
    assert refusal.code == "board-exists"
    assert "'matmul'" in refusal.message
    assert "choose another name" in refusal.message


def test_people_s_submissions_are_counted_and_not_the_house_s() -> None:
    made = [SubmissionId(1), SubmissionId(2), SubmissionId(-1)]
    require_number(made, 2)
    require_number(made, None)
    with pytest.raises(UserError, match="nothing was deleted"):
        require_number(made, 3)
