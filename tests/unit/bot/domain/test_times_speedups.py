"""Speedups with their intervals, and how a time that counts is shown."""

import pytest

from bot.domain.scoring import ScoreValue
from bot.domain.times import show_score, show_speed_up


@pytest.mark.parametrize(
    ("slower", "faster", "shown"),
    [
        (ScoreValue(320, 0), ScoreValue(100, 0), "3.2x"),
        (ScoreValue(320, 10, 6), ScoreValue(100, 5, 0), "3.2x (2.9 to 3.5)"),
        (ScoreValue(320, 16), ScoreValue(100, 1, 120), "3.2x (at least 1.4)"),
        (ScoreValue(320, 16, None), ScoreValue(100, 5), "3.2x"),
        (ScoreValue(320, 16), ScoreValue(100, 5, None), "3.2x"),
    ],
    ids=["exact", "two intervals", "next to nothing", "reference unconfirmed", "unconfirmed"],
)
def test_a_speed_up_has_an_interval_if_both_times_have_one(
    slower: ScoreValue, faster: ScoreValue, shown: str
) -> None:
    assert show_speed_up(slower, faster) == shown


def test_a_time_that_no_clock_of_the_judge_confirms_says_so() -> None:
    assert show_score(ScoreValue(29_140, 60, 0)) == "29.14 µs ± 0.06"
    assert show_score(ScoreValue(29_140, 60, 1_000)) == "29.1 µs ± 1.1"
    assert show_score(ScoreValue(29_140, 60, None)) == "29.14 µs ± 0.06 (unconfirmed)"
