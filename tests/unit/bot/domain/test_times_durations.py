import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.times import common_unit, show_factor, show_span, show_time

_NS = {"ns": 1.0, "µs": 1e3, "ms": 1e6, "s": 1e9}


@pytest.mark.parametrize(
    ("time_ns", "half_ns", "shown"),
    [
        (29_140, 60, "29.14 µs ± 0.06"),
        (29_140, 55, "29.14 µs ± 0.06"),
        (29_140, 51, "29.14 µs ± 0.06"),
        (29_140, 3_200, "29.1 µs ± 3.2"),
        (1_234_567, 0, "1.235 ms ± 0.000"),
        (999_999, 10, "1.000 ms ± 0.001"),
        (2.5e9, 1.3e9, "2.5 s ± 1.3"),
        (512, 1, "512.0 ns ± 1.0"),
    ],
)
def test_a_time_is_shown_in_its_best_unit_with_its_interval(
    time_ns: float, half_ns: float, shown: str
) -> None:
    assert show_time(time_ns, half_ns) == shown


@pytest.mark.parametrize(
    ("factor", "shown"),
    [(3.21, "3.2x"), (0.454, "0.45x"), (0.0451, "0.045x"), (123.4, "123x"), (1.04, "1.04x")],
)
def test_a_factor_has_two_digits_at_least(factor: float, shown: str) -> None:
    assert show_factor(factor) == shown


def test_a_time_without_an_interval_has_three_digits() -> None:
    assert show_time(29_140) == "29.1 µs"
    assert show_time(0.5) == "0.500 ns"
    assert show_time(0.0) == "0 ns"


@given(st.floats(0.01, 1e12), st.floats(0, 1))
def test_what_is_shown_never_claims_more_precision_than_there_is(
    time_ns: float, relative: float
) -> None:
    value, unit, _, half = show_time(time_ns, relative * time_ns).split()
    assert float(value) * _NS[unit] == pytest.approx(time_ns, rel=0.051)
    assert float(half) * _NS[unit] >= relative * time_ns - 1e-9 * time_ns - 1e-5


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.2, "under 1 s"), (40, "40 s"), (300, "5 min"), (7200, "2 h"), (259_200, "3 days")],
)
def test_a_span_is_shown_roughly(seconds: float, shown: str) -> None:
    assert show_span(seconds) == shown


def test_several_times_share_the_unit_of_the_smallest() -> None:
    assert common_unit([2.5e6, 30_000.0]) == (1e3, "µs")
    assert common_unit([2.5e6, 7e6]) == (1e6, "ms")
    assert common_unit([]) == (1.0, "ns")
