import math
import random
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners.harness.timing.intervals import (
    log_interval,
    rounds_interval,
    standard_error_of_median,
    t_quantile,
)

positive = st.floats(min_value=1e-3, max_value=1e9)


@pytest.mark.parametrize(
    ("degrees", "known"),
    [(1, 12.706), (2, 4.303), (4, 2.776), (7, 2.365), (14, 2.145), (30, 2.042), (60, 2.000)],
)
def test_the_quantile_is_that_of_the_tables(degrees: int, known: float) -> None:
    assert t_quantile(degrees) == pytest.approx(known, abs=6e-4)


@pytest.mark.parametrize(("degrees", "known"), [(31, 2.0395), (40, 2.0211), (120, 1.9799)])
def test_the_quantile_beyond_the_table_is_expanded(degrees: int, known: float) -> None:
    assert t_quantile(degrees) == pytest.approx(known, abs=2e-4)


def test_an_interval_needs_two_values() -> None:
    with pytest.raises(ValueError, match="two values"):
        t_quantile(0)


def test_one_value_has_an_infinite_interval() -> None:
    found = log_interval([5.0])

    assert found.centre == pytest.approx(5.0)
    assert found.half_width == math.inf


def test_two_values_leave_one_degree_of_freedom() -> None:
    found = log_interval([1.0, math.exp(0.02)])

    assert found.half_width == pytest.approx(math.exp(0.01) * math.expm1(12.7062 * 0.01))


@given(st.lists(positive, min_size=2, max_size=20))
def test_the_centre_lies_between_the_extremes(values: list[float]) -> None:
    found = log_interval(values)

    assert min(values) * (1 - 1e-9) <= found.centre <= max(values) * (1 + 1e-9)
    assert found.half_width >= 0


@given(st.lists(positive, min_size=2, max_size=10), st.floats(min_value=0.01, max_value=100))
def test_the_relative_width_does_not_depend_on_the_unit(values: list[float], unit: float) -> None:
    plain, scaled = log_interval(values), log_interval([value * unit for value in values])

    relative = plain.half_width / plain.centre
    assert scaled.half_width / scaled.centre == pytest.approx(relative, rel=1e-6, abs=1e-9)


def test_equal_values_have_no_width() -> None:
    assert log_interval([7.0] * 5).half_width == pytest.approx(0, abs=1e-9)


def test_rounds_count_by_their_medians() -> None:
    rounds = [[1.0, 10.0, 1e6], [9.0, 10.0, 11.0]]

    assert rounds_interval(rounds).centre == pytest.approx(10.0)
    assert rounds_interval(rounds).half_width == pytest.approx(0, abs=1e-9)


def test_a_single_round_gives_the_interval_of_its_samples() -> None:
    found = rounds_interval([[9.0, 10.0, 11.0]])

    assert found.centre == 10.0
    assert found.half_width == pytest.approx(log_interval([9.0, 10.0, 11.0]).half_width)


def test_a_single_sample_is_as_uncertain_as_it_is_large() -> None:
    found = rounds_interval([[4.0]])

    assert found.centre == 4.0
    assert found.half_width == pytest.approx(4.0)


@pytest.mark.parametrize("rounds", [5, 8, 15])
def test_the_interval_holds_the_truth_as_often_as_it_says(rounds: int) -> None:
    generator = random.Random(rounds)  # noqa: S311 - a simulation
    held = 0
    for _ in range(2000):
        centres = [math.exp(generator.gauss(math.log(100), 0.02)) for _ in range(rounds)]
        drawn = [
            [centre * math.exp(generator.gauss(0, 0.05)) for _ in range(15)] for centre in centres
        ]
        found = rounds_interval(drawn)
        held += abs(found.centre - 100) <= found.half_width

    assert 0.93 <= held / 2000 <= 0.97


def test_the_standard_error_of_a_median_matches_simulation() -> None:
    generator = random.Random(1)  # noqa: S311 - a simulation
    draws = [[generator.gauss(50, 3) for _ in range(30)] for _ in range(800)]
    spread = deviation([median(draw) for draw in draws])
    told = median(standard_error_of_median(draw) for draw in draws)

    assert told == pytest.approx(spread, rel=0.15)


def deviation(values: list[float]) -> float:
    centre = sum(values) / len(values)
    return math.sqrt(sum((value - centre) ** 2 for value in values) / (len(values) - 1))


def test_the_median_of_one_sample_has_no_known_error() -> None:
    assert standard_error_of_median([3.0]) == 0.0


def test_one_outlier_does_not_widen_the_error_of_a_median() -> None:
    calm = [10.0 + 0.1 * index for index in range(20)]

    assert standard_error_of_median([*calm[:-1], 1e9]) == standard_error_of_median(calm)
