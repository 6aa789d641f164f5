"""A kernel that takes more than a hundred times as long as the reference is timed by few calls."""

import math
import time

import pytest

from runners.contract.comparison import SLOWER_MOST
from runners.contract.evaluation import RoundPolicy, StopReason
from runners.contract.task import Workload
from runners.harness.timing import stop_rule
from runners.harness.timing.rounds import Round
from runners.harness.timing.samples import SAMPLES_LEAST, SLOW_NS, SLOW_ROUNDS, SlowCalls
from tests.doubles.judging import SORT, make_judging, make_sort_task
from tests.unit.runners.harness.conftest import Sit
from tests.unit.runners.harness.timed import make_round
from tests.unit.runners.harness.watches import measured, watch

POLICY = RoundPolicy(looks=(3,), samples=5)
FEW_NUMBERS = (Workload(args={"size": 100, "seed": 2}),)
SLOW_S = 2 * SLOW_NS / 1e9
SLEEPING = f"""
import time, torch

def custom_kernel(data):
    time.sleep({SLOW_S})
    return torch.sort(data[0]).values
"""
SLEEPING_REFERENCE = SORT.replace(
    "def ref_kernel(data):", "def ref_kernel(data):\n    __import__('time').sleep(0.002)"
)
NO_REFERENCE = SORT.replace("ref_kernel", "_right")


@pytest.fixture(autouse=True)
def _ample_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no budget take samples away on a busy machine."""
    monkeypatch.setattr(stop_rule, "HOST_S", 1e4)


def slow_calls(sit: Sit, reference: str = SORT) -> SlowCalls:
    task = make_sort_task(reference, benchmarks=FEW_NUMBERS)
    return SlowCalls(sit(make_judging(task=task)), FEW_NUMBERS[0])


def round_of(time_ns: float) -> Round:
    return make_round(window=time_ns + 1e5, overheads_during=1e5)


def test_two_candidates_of_three_calls_time_a_slow_kernel(sit: Sit) -> None:
    task = make_sort_task(benchmarks=FEW_NUMBERS)

    found = measured(watch(sit, SLEEPING, rounds=POLICY, task=task))

    assert [len(samples) for samples in found.samples] == [SAMPLES_LEAST] * SLOW_ROUNDS
    assert (found.stop_reason, found.rounds) == (StopReason.SLOW, SLOW_ROUNDS)
    assert found.time_ns > 0.9 * SLOW_S * 1e9


@pytest.mark.parametrize("reference", [SLEEPING_REFERENCE, NO_REFERENCE])
def test_a_kernel_has_all_its_calls_if_the_reference_is_slow_too_or_missing(
    sit: Sit, reference: str
) -> None:
    task = make_sort_task(reference, benchmarks=FEW_NUMBERS)

    found = measured(watch(sit, SLEEPING, rounds=POLICY, task=task))

    assert [len(samples) for samples in found.samples] == [POLICY.samples] * POLICY.looks[-1]


def test_the_reference_is_timed_with_all_that_it_does(sit: Sit) -> None:
    slow, unknown = slow_calls(sit, SLEEPING_REFERENCE), slow_calls(sit, NO_REFERENCE)
    for each in (slow, unknown):
        each.is_slow(round_of(2 * SLOW_NS))

    assert slow.reference_ns is not None
    assert 2e6 < slow.reference_ns < math.inf
    assert unknown.reference_ns == math.inf


def test_the_fastest_call_of_the_reference_counts(
    sit: Sit, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, lengths = [0], iter([9e6, 2e6, 30e6, 1e6])
    slow = slow_calls(sit)
    expected = slow.session.code.expected

    def timed(data: object) -> object:
        clock[0] += int(next(lengths))
        return expected(data)

    monkeypatch.setattr(slow.session.code, "expected", timed)
    monkeypatch.setattr(time, "perf_counter_ns", lambda: clock[0])

    assert not slow.is_slow(round_of(40e6))
    assert slow.reference_ns == 2e6
    assert next(lengths) == 1e6  # three calls took 41 ms


def test_no_reference_is_run_for_short_calls(sit: Sit, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = slow_calls(sit)
    monkeypatch.delattr(slow.session, "task_code")  # no code, no call

    assert not slow.is_slow(round_of(SLOW_NS))


@pytest.mark.parametrize(
    ("times", "ends"),
    [
        ((1, 1), False),
        ((1.01,), False),
        ((1.01, 1), False),
        ((1.01, 1.01), True),
        ((1, 1.01, 1.01), False),
    ],
)
def test_the_timing_ends_if_every_candidate_was_too_slow(
    sit: Sit, times: tuple[float, ...], *, ends: bool
) -> None:
    slow = slow_calls(sit)
    slow.reference_ns = 1e6

    assert slow.was_slow([round_of(each * SLOWER_MOST * 1e6) for each in times]) is ends
