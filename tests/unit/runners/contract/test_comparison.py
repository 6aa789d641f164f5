import pytest
from pydantic import ValidationError

from runners.contract.comparison import Comparison, Ratio
from runners.contract.verdict import Verdict


def test_a_rival_that_failed_has_no_ratio() -> None:
    ratios = (Ratio(ratio=0.98, half_width=0.01, rounds=5),)
    assert Comparison(benchmarks=ratios, rival_verdict=Verdict.PASSED).benchmarks == ratios
    with pytest.raises(ValidationError, match="a rival that failed"):
        Comparison(benchmarks=ratios, rival_verdict=Verdict.CRASHED)


def test_one_pair_of_rounds_makes_no_ratio() -> None:
    with pytest.raises(ValidationError, match="greater than or equal to 2"):
        Ratio(ratio=0.98, half_width=0.01, rounds=1)


@pytest.mark.parametrize(("half_width", "tie"), [(0.021, True), (0.019, False)])
def test_an_interval_that_contains_1_is_a_tie(half_width: float, *, tie: bool) -> None:
    for ratio in (0.98, 1.02):
        assert Ratio(ratio=ratio, half_width=half_width, rounds=5).is_tie == tie
