"""Which calls on the CPU are left out for waiting."""

import pytest

from runners.contract.evaluation import StopReason
from runners.contract.verdict import Verdict
from runners.harness.timing import clocks, cpu_times
from runners.harness.timing.intervals import mean_of_faster_half
from runners.harness.timing.rounds import (
    CALM_LEAST,
    LEFT_OUT,
    WAITED,
    WAITED_NS,
    Round,
    Trains,
    waited,
)
from runners.harness.verdicts import VerdictError
from tests.unit.runners.harness.timed import MS, make_round


def busy(others_ns: float = 100 * MS) -> Round:
    return Round(others_ns=lambda: others_ns)


@pytest.mark.parametrize("window", [0.1 * MS, 1 * MS, 10 * MS])
def test_a_call_waited_if_that_is_more_than_a_part_of_its_window(window: float) -> None:
    most = max(WAITED_NS, WAITED * window)
    assert not waited(most, window)
    assert waited(most + 1, window)


def leave_out(
    result: Round, most: int, *, waited_ms: float = 1, window_ms: float = 2, cpu_ms: float = 0
) -> bool:
    return result.leaves_out(waited_ms * MS, window_ms * MS, int(cpu_ms * MS), most)


def test_a_call_that_waited_for_others_is_left_out_and_counted() -> None:
    result = busy()
    assert leave_out(result, 3)
    assert not leave_out(result, 3, waited_ms=0.01)
    assert (result.left_out, result.left_out_ns) == ([2 * MS], 1 * MS)


def test_the_number_of_calls_left_out_is_limited_however_long_they_waited() -> None:
    result = busy()
    assert [leave_out(result, 2) for _ in range(4)] == [True, True, False, False]


def test_calls_left_out_have_waited_at_most_as_long_as_other_processes_ran() -> None:
    """A candidate's own threads can wait for each other; on an idle machine that gains nothing."""
    assert not leave_out(busy(0), 9)
    result = busy(2.5 * MS)
    assert [leave_out(result, 9) for _ in range(3)] == [True, True, False]


def test_the_faster_half_of_the_calls_gains_nothing_by_choosing_them() -> None:
    """A published time is their mean, which can change although the median does not."""
    result = busy()
    result.windows, result.left_out = [1 * MS, *[10 * MS] * 5], [10 * MS] * 3
    kept, whole = (
        mean_of_faster_half(each) for each in (result.windows, result.windows + result.left_out)
    )
    assert result.choosable == whole - kept > 0


def test_without_a_clock_of_others_nothing_is_left_out() -> None:
    assert not leave_out(Round(), 9)


def chosen(own: list[float], *, slow: float) -> list[Round]:
    """Rounds on a busy machine in which every call slower than `slow` waited on purpose."""
    rounds = []
    for _ in range(3):
        result = make_round(window=1 * MS, on_gpu=False)
        result.windows, result.cpu_ns_used, result.calibration_cpu_ns = [], [], [0.0]
        result.others_ns = lambda: 1000 * MS
        for window in own:
            waiting_ms = window if window > slow else 0
            most = len(own) // LEFT_OUT
            if not leave_out(result, most, waited_ms=waiting_ms, window_ms=window):
                result.add(window * MS, 0.0, 0)
        rounds.append(result)
    return rounds


@pytest.mark.parametrize("slow", [1.0, 1.1, 1.2, 1.4, 9.0])
def test_choosing_the_calls_that_are_left_out_lowers_no_time(slow: float) -> None:
    """Whatever made the calls wait: own threads, another slot's load, a stop, a pinned core."""
    own = [1.0, 1.05, 1.1, 1.15, 1.2, 1.3, 1.4, 1.5]
    (honest, *_), attacking = chosen(own, slow=9), chosen(own, slow=slow)

    assert clocks.own_value(attacking[0]) >= clocks.own_value(honest)
    found = clocks.measurement(attacking, StopReason.ROUND_CAP)
    told = clocks.measurement(chosen(own, slow=9), StopReason.ROUND_CAP)
    assert found.time_ns + found.resolution_ns >= told.time_ns
    assert found.left_out == 3 * sum(each > slow for each in own[:8]) or slow < 1.2


def test_choosing_the_calls_that_are_repeated_lowers_no_time_either() -> None:
    """Linux goes on ending a thread of a stopped process, so any call may be repeated."""
    honest, attacking = (make_round(window=1 * MS, on_gpu=False) for _ in range(2))
    honest.windows = [each * MS for each in (1, 2, 1, 2, 2, 1, 2, 2)]
    attacking.windows, attacking.calibration_cpu_ns = [], [0.0]
    for each in honest.windows:
        if each > 1 * MS:
            attacking.discard(VerdictError(Verdict.DISALLOWED, "ran"), each)
        else:
            attacking.add(each, 0.0, 0)

    assert attacking.bound < honest.bound
    assert clocks.own_value(attacking) >= clocks.own_value(honest)
    found = clocks.measurement([attacking] * 3, StopReason.ROUND_CAP)
    assert found.time_ns + found.resolution_ns >= clocks.own_value(honest)
    attacking.trains = Trains()
    assert attacking.choosable == 0


def test_a_speed_up_tells_that_calls_were_left_out_in_its_interval() -> None:
    own = [1.0, 1.05, 1.1, 1.15, 1.2, 1.3, 1.4, 1.5]
    rounds = chosen(own, slow=1.2)
    for each in rounds:
        each.reference_windows = [2 * MS] * CALM_LEAST

    found = cpu_times.ratio_to_reference(rounds)
    assert found is not None
    assert found.half_width >= found.ratio * rounds[0].choosable / rounds[0].bound > 0


def test_the_cpu_time_of_a_call_that_is_left_out_counts_all_the_same() -> None:
    result = make_round(window=1 * MS, on_gpu=False)
    result.others_ns, result.threads = lambda: 1000 * MS, 1
    result.cpu_ns_used, result.calibration_cpu_ns = [], [0.0]
    for _ in range(9):
        assert leave_out(result, 9, cpu_ms=8)
    result.add(1 * MS, 0.0, 0)

    assert result.bound >= 7.9 * MS


def paired(own: float, reference: float) -> Round:
    result = make_round(window=own + 0.1 * MS, on_gpu=False)
    result.reference_windows = [reference + 0.1 * MS] * CALM_LEAST
    return result


def test_a_round_in_which_few_calls_of_the_reference_were_calm_has_no_reference() -> None:
    result = paired(1 * MS, 2 * MS)
    result.reference_waited = [9 * MS] * 20
    assert result.reference == pytest.approx(2 * MS)
    del result.reference_windows[0]
    assert result.reference is None
    result.reference_waited.clear()
    assert result.reference == pytest.approx(2 * MS)
