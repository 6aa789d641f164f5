"""Speedups with their intervals, and how a time that counts is shown."""

import pytest

from bot.domain.scoring import PairRatio, ScoreValue
from bot.domain.times import (
    describe_speed_up,
    show_change,
    show_gap,
    show_score,
    show_speed_up,
    speed_up_over,
)
from tests.doubles.factories import make_score


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


@pytest.mark.parametrize(
    ("time_ns", "words", "gap"),
    [
        (100.0, "0.0 % slower than Ada", "0.0 % behind Ada"),
        (102.9, "2.9 % slower than Ada", "2.9 % behind Ada"),
        (112.0, "12 % slower than Ada", "12 % behind Ada"),
        (200.0, "2.0x as long as Ada", "2.0x as long as Ada"),
        (1_600.0, "16x as long as Ada", "16x as long as Ada"),
        (80.0, "25 % faster than Ada", "0.0 % behind Ada"),
        (50.0, "2.0x as fast as Ada", "0.0 % behind Ada"),
        (6.25, "16x as fast as Ada", "0.0 % behind Ada"),
    ],
)
def test_a_difference_is_a_percentage_and_from_twice_on_a_factor(
    time_ns: float, words: str, gap: str
) -> None:
    assert show_change(time_ns, 100.0, "Ada") == words
    assert show_gap(time_ns, 100.0, "Ada") == gap
    assert words.startswith(show_change(time_ns, 100.0))


@pytest.mark.parametrize(
    ("time_ns", "gap"), [(100.0, "+0.0 %"), (103.0, "+3.0 %"), (320.0, "3.2x")]
)
def test_a_gap_without_a_name_is_short(time_ns: float, gap: str) -> None:
    assert show_gap(time_ns, 100.0) == gap


def test_the_speedup_over_the_reference_is_by_turns_if_known() -> None:
    reference = ScoreValue(990.0, 5.0)
    apart, in_turn = (
        make_score(1, 1_000.0, 5.0, vs_reference=each) for each in (None, PairRatio(0.96, 0.01))
    )
    for value in (reference, None):
        faster = speed_up_over(value, in_turn)
        assert faster is not None
        assert describe_speed_up(faster) == "1.04x (1.03 to 1.05)"
    faster = speed_up_over(reference, apart)
    assert faster is not None
    assert describe_speed_up(faster) == "0.990x (0.980 to 1.000)"
    assert speed_up_over(None, apart) is None
