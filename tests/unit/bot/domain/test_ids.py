"""Tests of what a number says by itself."""

from bot.domain.ids import SubmissionId, is_storable, is_system_submission


def test_the_house_s_own_are_below_zero() -> None:
    assert is_system_submission(SubmissionId(-1))
    assert not is_system_submission(SubmissionId(1))


def test_a_database_has_room_for_numbers_of_64_bits() -> None:
    assert all(map(is_storable, (0, -(1 << 63), (1 << 63) - 1)))
    assert not any(map(is_storable, (1 << 63, -(1 << 63) - 1, 10**19)))
