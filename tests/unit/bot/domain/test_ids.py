"""Tests of what a number says by itself."""

from bot.domain.ids import SubmissionId, is_the_houses


def test_the_house_s_own_are_below_zero() -> None:
    assert is_the_houses(SubmissionId(-1))
    assert not is_the_houses(SubmissionId(1))
