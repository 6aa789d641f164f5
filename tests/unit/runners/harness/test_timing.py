import pytest

from runners.contract.evaluation import RoundPolicy, StopReason
from runners.contract.task import Mode
from runners.contract.verdict import Verdict
from runners.harness.deadline import Deadline
from runners.harness.ruling import Ruling
from runners.harness.timing import Allowance, Stopwatch
from tests.doubles.judging import SORT, SORTED, make_judging, make_sort_task
from tests.unit.runners.harness.conftest import Sit

ROUNDS_TOLD: list[int] = []


def watch(sit: Sit, source: str = SORTED, seconds: float = 20, **changes: object) -> Stopwatch:
    session = sit(make_judging(source, Mode.RANKED, **changes))
    (workload,) = session.request.task.benchmarks
    limit = Deadline.after(seconds)
    return Stopwatch(session, workload, Allowance(limit, limit), ROUNDS_TOLD.append)


def test_a_narrow_interval_stops_the_timing(sit: Sit) -> None:
    ROUNDS_TOLD.clear()
    wide = RoundPolicy(looks=(2, 6), samples=3, half_width=1000.0)

    found = watch(sit, rounds=wide).measure()

    assert (found.rounds, found.stop_reason) == (2, StopReason.PRECISE)
    assert ROUNDS_TOLD == [1, 2]


def test_a_wide_interval_goes_on_to_the_cap(sit: Sit) -> None:
    narrow = RoundPolicy(looks=(2, 3), samples=3, half_width=1e-9)

    found = watch(sit, rounds=narrow).measure()

    assert (found.rounds, found.stop_reason) == (3, StopReason.ROUND_CAP)


def test_a_near_deadline_stops_the_timing_with_fewer_samples(sit: Sit) -> None:
    slow = SORTED.replace("    return", "    import time; time.sleep(0.1)\n    return")
    policy = RoundPolicy(looks=(5,), samples=30)

    found = watch(sit, slow, seconds=2.0, rounds=policy).measure()

    assert found.stop_reason is StopReason.TIME_CAP
    assert all(3 <= len(samples) < 30 for samples in found.samples)


def test_every_candidate_is_a_fresh_one(sit: Sit) -> None:
    counting = SORTED.replace("def", "calls = []\ndef").replace(
        "    return", "    calls.append(1); print(len(calls))\n    return"
    )
    stopwatch = watch(sit, counting, rounds=RoundPolicy(looks=(2,), samples=4))

    stopwatch.measure()

    assert bytes(stopwatch.session.log).split() == [str(n).encode() for n in range(1, 8)] * 2


@pytest.mark.parametrize("call", [2, 5])
def test_every_output_is_checked_even_of_the_warm_up(sit: Sit, call: int) -> None:
    cheating = SORTED.replace("def", "calls = []\ndef").replace(
        "    return",
        f"    calls.append(1)\n    if len(calls) == {call}: return data[1]\n    return",
    )

    with pytest.raises(Ruling) as ruling:
        watch(sit, cheating).measure()

    assert ruling.value.verdict is Verdict.WRONG_ANSWER


def test_a_task_without_a_reference_kernel_is_timed_as_well(sit: Sit) -> None:
    unnamed = make_sort_task(SORT.replace("ref_kernel", "right_answer"))

    stopwatch = watch(sit, task=unnamed)

    assert stopwatch.expected is None
    assert stopwatch.measure().rounds == 2


def test_a_longer_kernel_takes_longer_by_its_own_time(sit: Sit) -> None:
    def slowed(seconds: float) -> str:
        return SORTED.replace("    return", f"    import time; time.sleep({seconds})\n    return")

    short, long = (watch(sit, slowed(seconds)).measure().time_ns for seconds in (0.01, 0.03))

    assert long - short == pytest.approx(20e6, rel=0.25)
