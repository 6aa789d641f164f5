import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.reports.figures import histogram, spans
from tests.doubles.factories import make_score, rank


def test_without_standings_there_are_no_spans() -> None:
    assert spans(()) is None


def test_people_who_share_a_rank_share_a_band_and_others_have_none() -> None:
    standings = rank([make_score(1, 100.0, 2.0), make_score(2, 101.0, 1.0), make_score(3, 150.0)])
    found = spans(standings)
    assert found is not None
    first, second, third = found.rows
    assert first.band == second.band
    assert first.band is not None
    assert third.band is None
    left, width = first.band
    assert left <= min(first.left, second.left)
    assert math.isclose(left + width, max(first.right, second.right), abs_tol=0.02)


def test_a_band_spans_those_of_the_rank_that_are_not_shown_as_well() -> None:
    standings = rank([make_score(1, 100.0, 2.0), make_score(2, 101.0, 1.0), make_score(3, 150.0)])
    assert [each.rank for each in standings] == [1, 1, 3]
    shown = spans(standings[1:2], standings)
    assert shown is not None
    (row,) = shown.rows
    assert row.band is not None
    assert row.band[0] < row.left
    alone = spans(standings[2:], standings)
    assert alone is not None
    assert alone.rows[0].band is None


def test_times_far_apart_are_drawn_on_a_logarithmic_scale() -> None:
    near, far = rank([make_score(1, 10.0), make_score(2, 11.0)]), [10.0, 100.0, 1000.0]
    linear, found = spans(near), spans(rank([make_score(n, t) for n, t in enumerate(far)]))
    assert linear is not None
    assert found is not None
    assert not linear.logarithmic
    assert found.logarithmic
    assert found.rows[1].at == pytest.approx(50)


@given(st.lists(st.tuples(st.floats(1, 1e12), st.floats(0, 1e12)), min_size=1, max_size=20))
def test_everything_lies_within_the_drawing(times: list[tuple[float, float]]) -> None:
    found = spans(rank([make_score(n, time, half) for n, (time, half) in enumerate(times)]))
    assert found is not None
    for row in found.rows:
        assert 0 <= row.left <= row.at <= row.right <= 100
        if row.band is not None:
            assert 0 <= row.band[0] <= row.band[0] + row.band[1] <= 100.01


def test_no_sample_has_no_histogram() -> None:
    assert histogram(()) is None
    assert histogram((math.nan, math.inf)) is None


def test_one_slow_sample_does_not_compress_the_others() -> None:
    found = histogram([100.0 + n / 100 for n in range(300)] + [10_000.0])
    assert found is not None
    assert found.high < 200
    assert (found.count, found.beyond) == (301, 1)
    assert max(bar.height for bar in found.bars) == 100


def test_one_of_few_samples_is_left_out_of_the_scale_if_it_is_far_out() -> None:
    found = histogram([100.0 + n for n in range(20)] + [900.0])
    assert found is not None
    assert (found.high, found.count, found.beyond) == (119.0, 21, 1)


def test_a_few_of_many_samples_are_left_out_of_the_scale_but_not_a_second_peak() -> None:
    near = [100.0 + n for n in range(83)]
    found = histogram([*near, 400.0, 600.0, 900.0])
    assert found is not None
    assert (found.high, found.beyond) == (182.0, 3)
    found = histogram([*near, *[400.0] * 20])
    assert found is not None
    assert (found.high, found.beyond) == (400.0, 0)


def test_a_scale_has_all_samples_if_none_of_them_is_far_out() -> None:
    for samples in ([100.0 + n for n in range(20)], [100.0] * 15 + [200.0] * 5, [1.0, 1.1, 9.0]):
        found = histogram(samples)
        assert found is not None
        assert (found.high, found.beyond) == (max(samples), 0)


def test_the_ends_are_the_fastest_and_the_slowest_sample() -> None:
    found = histogram([1.39, 1.5, 2.72], [("time", 1.46), ("bound", 1.45)])
    assert found is not None
    assert (found.low, found.high) == (1.39, 2.72)


def test_equal_samples_have_a_bar_and_marks_lie_on_the_scale() -> None:
    found = histogram([5.0, 5.0], [("time", 5.0), ("bound", 4.0)])
    assert found is not None
    assert len(found.bars) == 1
    (_, time), (_, bound) = found.marks
    assert 0 <= bound < time <= 100


def test_samples_below_zero_are_drawn_as_zero() -> None:
    found = histogram([-8.0e6, 0.0, 3.0e6])
    assert found is not None
    assert (found.low, found.high, found.count) == (0.0, 3.0e6, 3)


def test_a_kernel_below_the_resolution_has_a_histogram() -> None:
    found = histogram([-1.0, 0.0])
    assert found is not None
    assert (found.low, found.median) == (0.0, 0.0)


def test_samples_that_are_far_apart_have_a_logarithmic_axis() -> None:
    near = histogram([100.0, 150.0, 390.0])
    far = histogram([100.0, 1_000.0, 10_000.0], [("time", 1_000.0)])
    assert near is not None
    assert far is not None
    assert (near.logarithmic, far.logarithmic) == (False, True)
    assert far.marks == (("time", 50.0),)
    assert [round(each.left) for each in far.bars] == [0, 50, 98]
    zero = histogram([0.0, 1_000.0, 10_000.0])
    assert zero is not None
    assert not zero.logarithmic
