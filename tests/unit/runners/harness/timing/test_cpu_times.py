import math
import random

import pytest

from runners.contract.evaluation import StopReason
from runners.harness.timing import clocks
from runners.harness.timing.cpu_times import (
    is_too_noisy,
    ratio_to_reference,
    relative_half_width,
    time_interval,
)
from runners.harness.timing.rounds import CALM_LEAST, Round
from tests.unit.runners.harness.timed import MS, make_round


def paired(own: float, reference: float) -> Round:
    """A round with these times of the kernel and of the reference, in ns."""
    result = make_round(window=own + 0.1 * MS, on_gpu=False)
    result.reference_windows = [reference + 0.1 * MS] * CALM_LEAST
    return result


def with_windows(*windows_ms: float) -> Round:
    result = make_round(on_gpu=False)
    result.windows = [0.1 * MS + each * MS for each in windows_ms]
    return result


def test_the_time_is_the_mean_of_the_faster_half_of_all_calls() -> None:
    rounds = [with_windows(1.0, 9.0, 1.2), with_windows(1.1, 9.0, 9.0)]

    assert time_interval(rounds).centre == pytest.approx(1.1 * MS)
    found = clocks.measurement(rounds, StopReason.PRECISE)
    assert found.time_ns == found.bound_ns == time_interval(rounds).centre


@pytest.mark.parametrize("count", [5, 15])
def test_a_slow_round_does_not_change_the_time(count: int) -> None:
    calm = [with_windows(*(1.0 + 0.001 * n for n in range(9))) for _ in range(count)]
    slow = [with_windows(*[2.4] * 9), *calm[1:]]

    assert time_interval(slow).centre == pytest.approx(time_interval(calm).centre, rel=0.01)
    assert time_interval(slow).half_width < 0.01 * MS


def test_the_time_is_at_least_the_cpu_time_of_each_thread() -> None:
    rounds = [with_windows(1.0, 1.0, 1.0) for _ in range(2)]
    for each in rounds:
        each.threads, each.calibration_cpu_ns = 2, [0.5 * MS]
        each.cpu_ns_used = [5.5 * MS, 5.5 * MS, 9.5 * MS]

    assert time_interval(rounds).centre == pytest.approx(2.5 * MS)


def test_one_round_has_twice_its_own_error() -> None:
    only = make_round(noise=50.0)

    assert time_interval([only]).half_width == 2 * only.error > 0


def test_the_interval_contains_the_true_time_as_often_as_it_says() -> None:
    chance, inside = random.Random(1), 0  # noqa: S311 - the same result each time
    for _ in range(200):
        rounds = []
        for _ in range(8):
            slow = math.exp(chance.gauss(0, 0.1))
            windows = [slow * math.exp(chance.gauss(0, 0.02)) for _ in range(9)]
            rounds.append(with_windows(*windows))
        found = time_interval(rounds)
        inside += abs(found.centre - 0.935 * MS) <= found.half_width

    assert inside >= 180


def test_the_ratio_is_that_within_rounds_whatever_slows_both() -> None:
    rounds = [paired(1 * MS * slow, 2 * MS * slow) for slow in (1, 3, 1.5, 2)]

    found = clocks.measurement(rounds, StopReason.ROUND_CAP)

    assert found.vs_reference is not None
    assert found.vs_reference.ratio == pytest.approx(0.5)
    assert found.vs_reference.half_width == pytest.approx(0, abs=1e-9)
    assert found.half_width_ns > 0.5 * found.time_ns  # of the time itself little is known
    assert relative_half_width(rounds) == pytest.approx(0, abs=1e-9)
    assert not is_too_noisy(rounds)  # the ratio decides


def test_without_a_reference_the_time_decides_whether_it_is_too_noisy() -> None:
    rounds = [make_round(window=slow * MS, on_gpu=False) for slow in (1, 3, 1.5, 2)]

    assert is_too_noisy(rounds)


def test_a_ratio_has_the_interval_of_its_rounds() -> None:
    near, far = (
        ratio_to_reference([paired(1 * MS, factor * MS) for factor in factors])
        for factors in ((1.99, 2.0, 2.01, 2.0), (1.9, 2.0, 2.1, 2.0))
    )

    assert near is not None
    assert far is not None
    assert far.half_width == pytest.approx(10 * near.half_width, rel=0.1)
    assert far.ratio - far.half_width < 0.5 < far.ratio + far.half_width


def test_time_and_ratio_give_the_time_of_the_reference_itself() -> None:
    """Slow rounds without one made it many times as long, and a board keeps its first time."""
    slow = make_round(window=50 * MS, on_gpu=False)
    found = clocks.measurement([*[paired(1 * MS, 2 * MS)] * 2, slow, slow], StopReason.BUDGET)

    assert found.vs_reference is not None
    assert found.time_ns / found.vs_reference.ratio == pytest.approx(2 * MS)


def test_without_a_reference_in_half_of_the_rounds_there_is_no_ratio() -> None:
    alone, both = make_round(on_gpu=False), paired(1 * MS, 2 * MS)
    assert ratio_to_reference([both, both, alone, alone]) is not None
    assert ratio_to_reference([both, both, alone, alone, alone]) is None
    assert ratio_to_reference([paired(1 * MS, 2 * MS)]) is None
    assert ratio_to_reference([paired(1 * MS, 0)] * 3) is None
