"""Refusals that people read."""

from bot.store.refusals import board_exists


def test_a_taken_name_is_named_with_what_to_do_next() -> None:
    refusal = board_exists("matmul")
    assert refusal.code == "board-exists"
    assert "'matmul'" in refusal.message
    assert "choose another name" in refusal.message
