"""Calls of the reference beside the submission's, on the CPU."""

from statistics import median

import pytest

from runners.contract.evaluation import RoundPolicy
from runners.contract.task import TaskDefinition
from runners.harness.deadline import Deadline
from runners.harness.timing import calls, stop_rule
from runners.harness.timing.rounds import Round
from tests.doubles.judging import SORT, SORTED, make_sort_task
from tests.unit.runners.harness.conftest import Sit
from tests.unit.runners.harness.watches import measured, watch

POLICY = RoundPolicy(looks=(5,), samples=4)
IN_A_CANDIDATE = (
    "    import os, time\n    if os.path.exists(os.path.expanduser('~/submission.py')): {}\n"
)


def reference(action: str, where: str = IN_A_CANDIDATE) -> TaskDefinition:
    """A task whose reference also does this, where it runs as a submission."""
    return make_sort_task(SORT.replace("    return torch.sort", where.format(action) + RETURN))


RETURN = "    return torch.sort"


@pytest.fixture(autouse=True)
def _ample_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no budget take samples away on a busy machine."""
    monkeypatch.setattr(stop_rule, "HOST_S", 1e4)


def test_the_reference_is_timed_in_turn_on_the_submissions_inputs(sit: Sit) -> None:
    """A sleep in the reference shows; one of a submission does not reach it."""
    stopwatch = watch(sit, task=reference("time.sleep(0.05)"), rounds=POLICY)
    found = measured(stopwatch)

    for each in stopwatch.rounds:  # on a busy machine most calls may have waited
        assert median(each.reference_windows + each.reference_waited) > 50e6 > found.time_ns


def test_a_submission_sees_nothing_of_the_reference(sit: Sit) -> None:
    spying = SORTED.replace(
        "    return", "    import os; print(os.listdir(os.path.expanduser('~')))\n    return"
    )
    stopwatch = watch(sit, spying, rounds=POLICY)
    measured(stopwatch)

    assert b"submission" in stopwatch.session.log
    assert b"reference" not in stopwatch.session.log


@pytest.mark.parametrize("broken", ["os._exit(3)", "raise ValueError", "time.sleep(30)"])
def test_a_reference_that_fails_as_a_submission_is_given_up_and_blames_nobody(
    sit: Sit, broken: str
) -> None:
    """In the judge, whose folder has no submission, it works."""
    stopwatch = watch(sit, task=reference(broken), rounds=POLICY)
    found = measured(stopwatch)

    assert found.vs_reference is None
    assert found.rounds == 5
    assert not stopwatch.session.log


def test_a_reference_that_is_judged_itself_has_none_beside_it(sit: Sit) -> None:
    task = make_sort_task(shared_files=("reference.py",))
    found = measured(watch(sit, task=task, rounds=POLICY))
    assert found.vs_reference is None


def test_the_reference_is_warmed_up_as_often_as_a_submission(
    sit: Sit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a single untimed call it was told to be 10 to 30 % slower than itself."""
    untimed: list[object] = []
    call = calls.ReferenceTimer.call

    def counting(
        self: calls.ReferenceTimer, data: object, share: Deadline, result: Round | None
    ) -> None:
        if result is None:
            untimed.append(data)
        call(self, data, share, result)

    monkeypatch.setattr(calls.ReferenceTimer, "call", counting)
    found = measured(watch(sit, rounds=POLICY))

    assert len(untimed) == calls.WARM_UPS * found.rounds
