"""When timing stops."""

from typing import Any, cast

import pytest

from runners.contract.evaluation import EvaluationRequest, RoundPolicy, StopReason
from runners.contract.task import Mode, Workload
from runners.harness.deadline import Deadline
from runners.harness.timing.rounds import Round
from runners.harness.timing.samples import SlowCalls
from runners.harness.timing.stop_rule import MARGIN, StopRule
from tests.doubles.factories import make_task
from tests.unit.runners.harness.timed import MS, make_round

AMPLE = Deadline.after(1_000_000)


class Slow:
    """Says whether the kernel is slow."""

    def __init__(self, *, slow: bool) -> None:
        self.slow = slow

    def was_slow(self, rounds: list[Round]) -> bool:
        return self.slow and len(rounds) > 1


def rule(mode: Mode = Mode.RANKED, *, slow: bool = False, gpu: str = "CPU") -> StopRule:
    request = EvaluationRequest(
        request_id="r",
        task=make_task(),
        source="",
        mode=mode,
        gpu=gpu,
        rounds=RoundPolicy(looks=(2, 4), samples=3),
    )
    return StopRule(request, Workload(args={"n": 1}), cast("SlowCalls", Slow(slow=slow)))


def host_round(window: float = 1.1 * MS) -> Round:
    return make_round(window=window, on_gpu=False)


@pytest.mark.parametrize(
    ("rounds", "stop"),
    [
        ([host_round()], None),
        ([host_round()] * 2, StopReason.PRECISE),
        ([host_round(), host_round(2 * MS)], None),
        ([host_round()] * 3, None),
        ([host_round(), host_round(2 * MS)] * 2, StopReason.ROUND_CAP),
    ],
)
def test_timing_stops_at_a_look_with_a_narrow_interval_or_after_the_last_round(
    rounds: list[Round], stop: StopReason | None
) -> None:
    assert rule().reason(rounds, 0.0, AMPLE) is stop


def test_calls_precede_others_for_twice_the_budget_however_slow_the_import_is() -> None:
    timed = rule()
    timed.on_cpu, timed.budget = True, Deadline.after(-100)
    assert timed.may_precede
    timed.preceded_s = 2 * timed.budget_s
    assert not timed.may_precede


@pytest.mark.parametrize("awaited", [True, False])
def test_timing_goes_on_for_twice_the_budget_while_a_reference_is_awaited(*, awaited: bool) -> None:
    timed, rounds = rule(), [host_round()] * 3  # at a precise look they would stop
    timed.on_cpu, timed.budget = True, Deadline.after(-1)
    assert timed.reason(rounds[:2], 0.0, AMPLE, awaited=awaited) is (
        None if awaited else StopReason.PRECISE
    )
    assert timed.reason(rounds, 0.0, AMPLE, awaited=awaited) is (
        None if awaited else StopReason.BUDGET
    )
    timed.budget = Deadline.after(-timed.budget_s)
    assert timed.reason(rounds, 0.0, AMPLE, awaited=awaited) is StopReason.BUDGET


def test_a_slow_kernels_timing_stops_first() -> None:
    assert rule(slow=True).reason([host_round()], 0.0, AMPLE) is None
    assert rule(slow=True).reason([host_round()] * 2, 0.0, AMPLE) is StopReason.SLOW


def test_no_round_begins_for_which_time_is_short() -> None:
    share = Deadline.after(10)
    assert rule().reason([host_round()], 10 / MARGIN - 1, share) is None
    assert rule().reason([host_round()], 10 / MARGIN, share) is StopReason.TIME_CAP


def test_a_claim_that_is_not_confirmed_gets_more_rounds() -> None:
    claimed: list[Any] = [make_round(window=0.12 * MS, claim=0.017 * MS, claimed=True)] * 2
    assert not rule().is_precise(claimed)
