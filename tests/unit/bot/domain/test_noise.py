"""A time on the CPU that is too uncertain to be ranked: kept, no failure, without a score."""

from typing import Any

import pytest

from bot.domain.noise import passed_too_noisy, too_noisy
from bot.domain.scoring import score
from runners.contract.comparison import NOISY_MOST, NOISY_MOST_NS, is_noisy
from runners.contract.evaluation import CaseKind, Evaluation, StopReason
from runners.contract.task import Mode
from runners.contract.verdict import Verdict
from tests.doubles.factories import make_case, make_evaluation, make_measurement, make_task

MS = 1e6


def timed(half_width: float, time: float = MS, **changes: object) -> Evaluation:
    measured = make_measurement(time, half_width).model_copy(update=changes)
    return make_evaluation(cases=(make_case(CaseKind.BENCHMARK, measurement=measured),))


def test_a_time_within_the_limit_is_ranked_and_one_beyond_is_not() -> None:
    assert score(make_task(), timed(NOISY_MOST * MS)) is not None
    noisy = timed(NOISY_MOST * MS + 1)
    assert score(make_task(), noisy) is None
    assert [each.spec for each in too_noisy(noisy)] == ["size: 1024"]


def test_a_short_kernel_needs_no_better_interval_than_any_machine_gives() -> None:
    assert score(make_task(), timed(NOISY_MOST_NS, time=5_000.0)) is not None
    assert score(make_task(), timed(NOISY_MOST_NS + 1, time=5_000.0)) is None


def test_a_reference_that_is_not_ranked_has_its_time_all_the_same() -> None:
    assert score(make_task(), timed(MS), ranked=False) is not None


@pytest.mark.parametrize(
    "changes",
    [{"stop_reason": StopReason.SLOW}, {"stop_reason": StopReason.TASK}, {"claimed_ns": MS}],
)
def test_what_has_a_rule_of_its_own_is_never_too_noisy(changes: dict[str, Any]) -> None:
    assert not too_noisy(timed(MS, **changes))


def test_a_time_that_should_have_a_ratio_but_has_none_is_not_ranked() -> None:
    """It ranked as it was, beside times that the ratio to the reference gives."""
    missed = timed(1.0, reference_missed=True)
    assert too_noisy(missed)
    assert score(make_task(), missed) is None
    assert not too_noisy(timed(1.0, reference_missed=True, stop_reason=StopReason.SLOW))


def test_a_time_of_which_the_clock_saw_nothing_is_not_ranked() -> None:
    floor = timed(1.0, time=1_000.0, resolution_ns=563_000.0)
    assert too_noisy(floor)
    assert score(make_task(), floor) is None
    assert not too_noisy(timed(1.0, time=50_000.0, resolution_ns=90_000.0))
    assert too_noisy(timed(1.0, time=1e3, resolution_ns=9e4, stop_reason=StopReason.SLOW))
    task = timed(1.0, time=1_000.0, resolution_ns=90_000.0, stop_reason=StopReason.TASK)
    assert not too_noisy(task)


def test_only_ranked_runs_on_the_cpu_are_too_noisy() -> None:
    noisy = timed(MS)
    assert not too_noisy(noisy.model_copy(update={"gpu": "H100"}))
    assert not too_noisy(noisy.model_copy(update={"mode": Mode.BENCHMARK}))


def test_a_run_that_failed_is_not_one_that_passed_too_noisily() -> None:
    assert passed_too_noisy(timed(MS))
    assert not passed_too_noisy(timed(1.0))
    assert not passed_too_noisy(timed(MS).model_copy(update={"verdict": Verdict.CRASHED}))


@pytest.mark.parametrize("time_ns", [1.0, NOISY_MOST_NS / NOISY_MOST, 1e9])
def test_a_half_width_may_be_a_part_of_the_time_or_what_any_machine_varies_by(
    time_ns: float,
) -> None:
    most = max(NOISY_MOST * time_ns, NOISY_MOST_NS)
    assert not is_noisy(time_ns, most)
    assert is_noisy(time_ns, most * 1.001)
