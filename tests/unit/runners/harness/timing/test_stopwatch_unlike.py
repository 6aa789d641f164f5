"""On a GPU, timing begins again with an input for which its candidates were not prepared."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from runners.contract.evaluation import RoundPolicy
from runners.contract.task import Mode, TaskDefinition
from runners.harness.judge.host_candidate import HostCandidate
from runners.harness.judge.session import planned
from runners.harness.protocol.arena import Plan
from runners.harness.protocol.channel import Exchange, Operation
from runners.harness.timing import calls, clocks, stopwatch, trains
from runners.harness.timing.calls import WARM_UPS, UnlikeInputError
from runners.harness.timing.stop_rule import StopRule
from runners.harness.timing.stopwatch import REHEARSALS, WorkloadTimer
from tests.doubles.judging import make_sort_task
from tests.unit.runners.harness.conftest import Sit
from tests.unit.runners.harness.watches import candidates_on_cpu, measured, speak_as_on_gpu, watch

LATE = 12
"""The first seed whose input or output has another structure; more are in the first candidate."""
SAMPLES = 3
ROUNDS = 2
TASK = """
import torch

def generate_input(size: int, seed: int):
    late = seed >= LATE
    return torch.full((ROWS,), float(seed)), FLAG

def ref_kernel(data):
    return data[0][:COUNT] + 0

def check_implementation(data, output):
    return torch.equal(output, ref_kernel(data))
"""


def task(rows: str = "size", flag: str = "False", count: str = "8") -> TaskDefinition:
    """A task in which these depend on `late`, or `count` on the input."""
    text = TASK.replace("LATE", str(LATE)).replace("ROWS", rows).replace("FLAG", flag)
    return make_sort_task(text.replace("COUNT", count))


def kernel(count: str = "8") -> str:
    return f"def custom_kernel(data):\n    return data[0][:{count}] + 0\n"


RARE = f"int(data[0][0] == {LATE})"


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[WorkloadTimer]:
    """The timers that began again; seeds count up, and candidates are on the CPU."""
    found: list[WorkloadTimer] = []
    begin_again = WorkloadTimer.begin_again

    def noting(timer: WorkloadTimer, unlike: UnlikeInputError) -> None:
        found.append(timer)
        begin_again(timer, unlike)

    monkeypatch.setattr(WorkloadTimer, "begin_again", noting)
    monkeypatch.setattr(calls, "seed_of", lambda _, __, index: index + 1)
    monkeypatch.setattr(clocks, "measurement", lambda *_, **__: None)
    monkeypatch.setattr(StopRule, "is_precise", lambda *_: False)
    monkeypatch.setattr(trains, "place_count", lambda *_: 16)
    speak_as_on_gpu(monkeypatch)
    candidates_on_cpu(monkeypatch)
    return found


Make = Callable[[TaskDefinition, str], WorkloadTimer]


@pytest.fixture
def make(sit: Sit) -> Make:
    policy = RoundPolicy(looks=(ROUNDS,), samples=SAMPLES)
    mode = Mode.BENCHMARK
    return lambda task, source: watch(sit, source, 60, mode, task=task, on_gpu=True, rounds=policy)


def test_an_output_whose_structure_differs_only_for_a_later_input_is_timed_as_one_that_varies(
    begun: list[WorkloadTimer], make: Make
) -> None:
    timer = make(task(count=RARE), kernel(RARE))
    measured(timer)

    assert begun == [timer]
    assert (timer.varies, timer.pool.expected) == (True, None)
    assert timer.pool.varies  # so that its candidates have a pool all the same
    assert (timer.trains.places, timer.pool.places) == (0, 0)
    assert len(timer.rounds) == ROUNDS
    kept = ROUNDS * (WARM_UPS + REHEARSALS + SAMPLES)
    dropped = LATE - 1 - 1  # up to the late input, and without the one that only the judge uses
    assert timer.index >= 1 + dropped + kept  # no input is used twice


def test_another_number_in_a_later_input_ends_trains_and_then_all_calls_withhold_theirs(
    begun: list[WorkloadTimer], make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    call: Callable[..., Exchange] = HostCandidate.call
    withheld = []

    def noting(
        candidate: HostCandidate, operation: Operation, *rest: object, **more: object
    ) -> Exchange:
        if operation is Operation.RUN:
            withheld.append(candidate.withholds)
        return call(candidate, operation, *rest, **more)

    monkeypatch.setattr(HostCandidate, "call", noting)
    timer = make(task(flag=f"seed == {LATE}"), kernel())
    measured(timer)

    assert begun == [timer]
    kept = ROUNDS * (WARM_UPS + REHEARSALS + SAMPLES)
    assert withheld[-kept:] == [True] * kept
    assert not any(withheld[:-kept]), "none of the earlier calls had the other number"
    assert (timer.trains.places, timer.pool.places) == (0, 0)
    assert (timer.varies, timer.pool.expected) == (False, timer.expected)
    assert len(timer.rounds) == ROUNDS


def test_an_unlike_input_of_a_train_is_never_in_one(begun: list[WorkloadTimer], make: Make) -> None:
    timer = make(task(flag=f"seed == {LATE}"), kernel())
    timer.reserve()
    assert timer.trains.places == 16
    timer.index = LATE - 3
    timer.trains.fresh()
    with pytest.raises(UnlikeInputError):
        timer.trains.fresh()
    timer.trains.fresh()


def test_an_input_that_is_larger_than_those_before_gets_room(
    begun: list[WorkloadTimer], make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def on_gpu(data: object) -> Plan:
        plan = planned(data)
        return replace(plan, device_size=plan.host_size)

    monkeypatch.setattr(calls, "planned", on_gpu)
    timer = make(task(rows="size + 4096 * late"), kernel())
    small = timer.plan.device_size
    measured(timer)

    assert begun == [timer]
    assert timer.plan == timer.pool.plan
    assert timer.plan.device_size == calls.ROOM * (small + 4096 * 4)
    assert len(timer.rounds) == ROUNDS


def test_without_a_reference_the_first_call_has_room_for_its_input(
    begun: list[WorkloadTimer], make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def on_gpu(data: object) -> Plan:
        plan = planned(data)
        return replace(plan, device_size=plan.host_size)

    monkeypatch.setattr(calls, "planned", on_gpu)
    monkeypatch.setattr(stopwatch, "planned", on_gpu)
    unnamed = task(rows="size + int(seed > 0) * 4096")
    files = {name: text.replace("ref_kernel", "right") for name, text in unnamed.files.items()}
    timer = make(unnamed.model_copy(update={"files": files}), kernel())
    small = timer.plan.device_size
    assert timer.expected is None
    timer._discover()
    assert timer.plan.device_size == timer.pool.plan.device_size == calls.ROOM * (small + 4096 * 4)


def test_the_second_input_is_prepared_for_before_any_candidate_starts(
    begun: list[WorkloadTimer], make: Make
) -> None:
    often = "int(data[0][0] > 0)"
    timer = make(task(count=often), kernel(often))
    measured(timer)

    assert not begun
    assert (timer.varies, timer.pool.expected) == (True, None)
