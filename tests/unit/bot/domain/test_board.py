"""Tests of a board's season."""

from datetime import timedelta

from tests.doubles.factories import NOON, make_board


def test_a_board_takes_submissions_up_to_its_deadline_and_not_after() -> None:
    board = make_board(deadline=NOON)
    assert board.is_open(NOON - timedelta(seconds=1))
    assert board.is_open(NOON)
    assert not board.is_open(NOON + timedelta(microseconds=1))


def test_a_board_without_a_deadline_stays_open() -> None:
    assert make_board(deadline=None).is_open(NOON + timedelta(days=10_000))


def test_a_board_of_the_houses_has_a_name_that_nobody_can_give() -> None:
    assert make_board(name="/eval").is_hidden
    assert not make_board(name="eval").is_hidden
