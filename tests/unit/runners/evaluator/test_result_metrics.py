import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners.evaluator.result import fast_p, geometric_mean, pass_at_k

RESULTS: list[dict[str, Any]] = [
    {"correctness": True, "speedup": 2.0},
    {"correctness": True, "speedup": 1.0},
    {"correctness": False, "speedup": 9.0},
    {"correctness": True, "speedup": None},
]


@pytest.mark.parametrize(("p", "share"), [(0, 0.5), (0.99, 0.5), (1, 0.25), (2, 0), (3, 0)])
def test_fast_p_counts_the_right_ones_that_are_strictly_faster(p: float, share: float) -> None:
    assert fast_p(RESULTS, p) == share


def test_fast_p_of_nothing_has_no_meaning() -> None:
    with pytest.raises(ValueError, match="no results"):
        fast_p([], 1)


def test_the_geometric_mean_leaves_out_what_was_not_timed() -> None:
    assert geometric_mean([2.0, None, 8.0]) == pytest.approx(4.0)
    assert geometric_mean([None]) is None


def test_pass_at_k_is_the_known_value() -> None:
    assert pass_at_k(10, 3, 1) == pytest.approx(0.3)
    assert pass_at_k(5, 2, 3) == pytest.approx(1 - 1 / 10)
    assert pass_at_k(4, 4, 1) == 1.0
    assert pass_at_k(4, 0, 4) == 0.0


@given(st.integers(1, 40), st.data())
def test_pass_at_k_is_a_chance_that_grows_with_k(tries: int, data: st.DataObject) -> None:
    right = data.draw(st.integers(0, tries))
    chances = [pass_at_k(tries, right, k) for k in range(1, tries + 1)]
    assert all(0 <= chance <= 1 for chance in chances)
    assert chances == sorted(chances)
    assert math.isclose(chances[0], right / tries, abs_tol=1e-12)


@pytest.mark.parametrize(("tries", "right", "k"), [(3, 4, 1), (3, -1, 1), (3, 1, 4), (3, 1, 0)])
def test_pass_at_k_refuses_what_has_no_meaning(tries: int, right: int, k: int) -> None:
    with pytest.raises(ValueError, match="is not defined"):
        pass_at_k(tries, right, k)
