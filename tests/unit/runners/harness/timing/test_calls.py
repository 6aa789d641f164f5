"""Calls of the reference beside the submission's, on the CPU."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import patch

import pytest

from runners.contract.evaluation import RoundPolicy
from runners.contract.task import TaskDefinition
from runners.contract.verdict import Verdict
from runners.harness.deadline import Deadline
from runners.harness.judge.host_candidate import HostCandidate
from runners.harness.protocol import channel, values
from runners.harness.sandbox import charged_memory
from runners.harness.sandbox.process_limits import Precedence
from runners.harness.supervision import handle
from runners.harness.supervision.handle import CandidateHandle
from runners.harness.timing import calls, stop_rule
from runners.harness.timing.rounds import CALM_LEAST, Round
from runners.harness.verdicts import VerdictError
from tests.doubles.judging import SORT, SORTED, make_sort_task
from tests.unit.runners.harness.conftest import Sit
from tests.unit.runners.harness.timed import make_round
from tests.unit.runners.harness.watches import measured, watch

MS = 1e6
DONE = channel.CandidateReply(status=channel.Status.DONE)
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


def test_the_reference_is_timed_beside_the_submission(sit: Sit) -> None:
    """A sleep in the reference shows; one of a submission does not reach it."""
    stopwatch = watch(sit, task=reference("time.sleep(0.05)"), rounds=POLICY)
    found = measured(stopwatch)

    for each in stopwatch.rounds:  # on a busy machine most calls may have waited
        assert median(each.reference_windows + each.reference_waited) > 50e6 > found.time_ns


def test_the_reference_is_timed_while_no_process_of_the_submission_exists(
    sit: Sit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A frozen one slowed it by timers, whose interrupts count for nobody."""
    stopwatch = watch(sit, rounds=POLICY)
    built: list[HostCandidate] = []
    beside: list[int] = []
    build, call = HostCandidate.build, calls.ReferenceTimer.call

    def building(candidate: HostCandidate, deadline: Deadline) -> None:
        if candidate.session is stopwatch.session:
            built.append(candidate)
        build(candidate, deadline)

    def calling(
        self: calls.ReferenceTimer, data: object, share: Deadline, result: Round | None
    ) -> None:
        if result is not None:
            beside.append(sum(not each.handle.process.killed for each in built))
        call(self, data, share, result)

    monkeypatch.setattr(HostCandidate, "build", building)
    monkeypatch.setattr(calls.ReferenceTimer, "call", calling)
    found = measured(stopwatch)

    assert len(built) == found.rounds == 5
    assert len(beside) >= 4 * 5  # two before and two after each of five rounds, more if they waited
    assert not any(beside)


FINALIZED = """
import time, torch, weakref

def burn():
    end = time.process_time() + 0.03
    while time.process_time() < end:
        pass

def custom_kernel(data):
    output = torch.sort(data[0]).values
    weakref.finalize(output, burn)
    return output
"""


def test_what_a_candidate_does_before_its_input_is_there_counts(sit: Sit) -> None:
    """The finalizer of its last output cleared the memory of the next one, and nobody saw it."""
    found = measured(watch(sit, FINALIZED, rounds=POLICY))

    assert found.time_ns > 25e6


@pytest.mark.parametrize(("prepared", "counts"), [(90, 0), (105, 0), (130, 25)])
def test_reading_a_request_takes_as_long_as_in_calibration(prepared: int, counts: int) -> None:
    called = channel.Exchange(50, DONE, cpu_ns=40, prepared_ns=prepared)

    found = calls.with_preparation(called, Round(prepared_ns=[100, 105, 400]))

    assert (found.window_ns, found.cpu_ns) == (50 + counts, 40 + counts)
    assert calls.with_preparation(called, Round()) == called


def test_once_inputs_differ_in_structure_calibration_reads_them_like_the_submission(
    sit: Sit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counting numbers in the raw request took a fifth of the time, and nothing said so."""
    told: list[tuple[bool, bool]] = []
    call = CandidateHandle.call

    def calling(
        self: CandidateHandle, order: bytes, deadline: Deadline, go: Callable[[], bytes]
    ) -> channel.Exchange:
        told.append((b'"touch"' in order, b"shape" in order))
        return call(self, order, deadline, go)

    monkeypatch.setattr(CandidateHandle, "call", calling)
    task = make_sort_task(SORT.replace("randn(size", "randn(size - seed % 7"))
    measured(watch(sit, task=task, rounds=POLICY))

    first = told.index((False, False))
    assert (True, True) in told[:first]
    assert {shape for _, shape in told[first:]} == {False}
    assert {touch for touch, _ in told[first:]} == {True, False}


def test_only_calls_run_before_other_processes(sit: Sit, monkeypatch: pytest.MonkeyPatch) -> None:
    """Making inputs and checking answers takes longer, and other programs run on this machine."""
    own, during = Precedence(), Counter[tuple[str, bool | None]]()

    def take(self: Precedence, *, wanted: bool) -> None:
        self.taken = wanted

    monkeypatch.setattr(Precedence, "take", take)
    monkeypatch.setattr(calls, "precedence", own)
    stopwatch = watch(sit, rounds=POLICY)

    def note(owner: type, name: str) -> None:
        of = getattr(owner, name)

        def noted(*args: Any, **named: Any) -> object:  # noqa: ANN401 - handed on
            during[name, own.taken] += 1
            return of(*args, **named)

        monkeypatch.setattr(owner, name, noted)

    for name in ("call", "echo", "fetch", "build"):
        note(HostCandidate, name)
    for name in ("generate", "mismatch"):
        note(type(stopwatch.session.code), name)

    measured(stopwatch)

    assert {name for name, taken in during if taken} == {"call", "echo"}
    assert during["call", True] > during["call", None] + during["call", False]  # warm-ups
    assert {name for name, taken in during if not taken} >= {
        "fetch",
        "build",
        "generate",
        "mismatch",
    }


def test_a_reference_that_fails_leaves_no_process_beside_the_submission(sit: Sit) -> None:
    stopwatch = watch(sit, task=reference("raise ValueError"), rounds=POLICY)
    seen: list[HostCandidate] = []
    started = calls.ReferenceTimer._started

    @contextmanager
    def starting(self: calls.ReferenceTimer, *args: Any) -> Iterator[HostCandidate]:  # noqa: ANN401
        with started(self, *args) as candidate:
            seen.append(candidate)
            yield candidate

    with (
        patch.object(calls.ReferenceTimer, "_started", starting),
        stopwatch.reference.fresh(stopwatch.calibration_input, Deadline.after(60)),
    ):
        assert stopwatch.reference.candidate is None
        (candidate,) = seen
        assert candidate.handle.process.killed


def test_the_reference_is_timed_at_least_twice_before_and_after_a_round(
    sit: Sit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "REFERENCE_SHARE", 0.0)
    stopwatch = watch(sit, rounds=POLICY)

    measured(stopwatch)

    for each in stopwatch.rounds:
        timed = len(each.reference_windows) + len(each.reference_waited)
        assert timed == 2 * calls.REFERENCE_LEAST


def test_a_reference_whose_calls_waited_is_timed_up_to_twice_as_often(
    sit: Sit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine too few of six calls were calm, and short kernels were not ranked."""
    stopwatch = watch(sit, rounds=RoundPolicy(looks=(1,), samples=6))
    stopwatch.reference.candidate = cast("HostCandidate", object())
    waits = iter([True, False, True, False, False, False, True])

    def call(_: object, __: Deadline, result: Round) -> None:
        (result.reference_waited if next(waits) else result.reference_windows).append(1.0)

    monkeypatch.setattr(stopwatch.reference, "call", call)
    result = Round()
    stopwatch._time_reference(result)
    assert (len(result.reference_windows), len(result.reference_waited)) == (3, 2)

    waits = iter([True] * 7)
    stopwatch._time_reference(result)
    assert (len(result.reference_windows), len(result.reference_waited)) == (3, 8)


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
    assert not found.reference_missed
    assert found.rounds == 5
    assert not stopwatch.session.log


def test_a_time_without_a_ratio_says_so_if_the_reference_failed_after_it_had_run(
    sit: Sit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a submission left made the reference exceed its memory; the time ranked as it was."""
    stopwatch = watch(sit, rounds=POLICY)
    call = HostCandidate.call

    def failing(self: HostCandidate, *args: Any, **options: Any) -> Any:  # noqa: ANN401
        if self is stopwatch.reference.candidate and stopwatch.rounds:
            raise VerdictError(Verdict.MEMORY_EXCEEDED, "much memory")
        return call(self, *args, **options)

    monkeypatch.setattr(HostCandidate, "call", failing)

    found = measured(stopwatch)

    assert found.vs_reference is None
    assert found.reference_missed


@pytest.mark.parametrize("hidden", [charged_memory.keeps_unmapped, charged_memory.hides_more])
def test_memory_of_no_process_is_not_that_of_the_reference_or_of_calibration(
    sit: Sit, monkeypatch: pytest.MonkeyPatch, hidden: Callable[..., bool]
) -> None:
    monkeypatch.setattr(charged_memory, hidden.__name__, lambda *_, **__: True)
    monkeypatch.setattr(handle, "WATCH_S", 0.0)
    stopwatch = watch(sit, rounds=POLICY)

    with (
        stopwatch.reference.fresh(stopwatch.calibration_input, Deadline.after(60)),
        stopwatch.pool.next_candidate() as candidate,
    ):
        stopwatch.deadline = Deadline.after(60)
        stopwatch._calibration_call(candidate)
        assert stopwatch.reference.candidate is not None
        with pytest.raises(VerdictError, match="of memory were used"):
            candidate.build(Deadline.after(60))


def test_a_time_without_a_ratio_says_so_if_the_submission_left_the_reference_no_time(
    sit: Sit,
) -> None:
    """One round fitted, which has no ratio, and the time ranked beside those that have one."""
    slow = "import time; time.sleep(3)\n" + SORTED
    found = measured(watch(sit, slow, seconds=5, rounds=POLICY))

    assert found.rounds == 1
    assert found.vs_reference is None
    assert found.reference_missed


def test_a_time_without_a_ratio_says_so_if_the_reference_takes_no_time_that_can_be_measured(
    sit: Sit,
) -> None:
    """The time ranked as it was: for an input of 1,500 numbers, 1.0 us for any kernel."""
    timer = watch(sit, rounds=POLICY).reference
    rounds = [make_round(on_gpu=False) for _ in range(5)]
    for each in rounds:
        each.reference_windows = [each.overhead] * CALM_LEAST

    assert timer.missed(rounds)
    for each in rounds:
        each.reference_windows = [each.overhead + MS] * CALM_LEAST
    assert not timer.missed(rounds)


def test_no_ratio_is_missed_where_a_single_round_is_wanted(sit: Sit) -> None:
    found = measured(watch(sit, rounds=RoundPolicy(looks=(1,), samples=4)))

    assert found.vs_reference is None
    assert not found.reference_missed


def test_a_call_of_the_reference_has_as_much_time_whatever_the_submission_has_spent(
    sit: Sit,
) -> None:
    """It had a twentieth of the time left, which a submission shrank until the reference failed."""
    given: list[float] = []

    def call(*arguments: object) -> channel.Exchange:
        given.append(cast("Deadline", arguments[-1]).remaining)
        return channel.Exchange(1.0, DONE)

    timer = watch(sit, rounds=POLICY).reference
    timer.candidate = cast("HostCandidate", SimpleNamespace(call=call))
    for left_s in (20, 5, 0.5):
        timer.call(None, Deadline.after(left_s), None)

    assert given == pytest.approx([1, 1, 0.5], abs=0.1)


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


class Calibrator:
    """A candidate whose calibration calls have these overheads."""

    @staticmethod
    def overhead(exchange: channel.Exchange) -> float:
        """Return the whole window."""
        return exchange.window_ns


def overheads(*timed: tuple[float, int], least: int = 100_000) -> list[float]:
    """The overheads that count, given the windows of the calls and how long each waited."""
    made = [
        channel.Exchange(window, DONE, waited_ns=waited - least, least_waited_ns=least)
        for window, waited in timed
    ]
    return calls.calm_overheads(cast("HostCandidate", Calibrator()), made)


def test_calibration_calls_that_waited_for_a_core_do_not_count() -> None:
    calm = [(0.2 * MS, 120_000), (0.21 * MS, 110_000), (0.19 * MS, 100_000)]
    assert overheads(*calm, *[(4.0 * MS, 3_900_000)] * 6) == [0.2 * MS, 0.21 * MS, 0.19 * MS]


def test_if_nearly_all_calibration_calls_waited_they_count_without_the_waiting() -> None:
    found = overheads((4.0 * MS, 3_900_000), *[(8.0 * MS, 7_900_000)] * 8, least=3_900_000)
    assert found == [pytest.approx(0.3 * MS)] * 9
    assert overheads((1.0 * MS, 100_000), (1.0 * MS, 9_000_000)) == [1.0 * MS, 0.0]


POSITIVE = make_sort_task(SORT.replace("torch.sort(data[0]).values", "data[0][data[0] > 0]"))


def test_an_output_is_compared_with_the_structure_of_the_right_one_for_its_own_input(
    sit: Sit,
) -> None:
    source = "def custom_kernel(data):\n    return data[0][data[0] > 0]\n"
    assert measured(watch(sit, source, task=POSITIVE, rounds=POLICY)).time_ns > 0


def test_an_output_with_the_structure_of_no_right_one_is_wrong(sit: Sit) -> None:
    source = "def custom_kernel(data):\n    return data[0][data[0] > 0][1:]\n"
    with pytest.raises(VerdictError, match="the output has shape") as ruling:
        measured(watch(sit, source, task=POSITIVE, rounds=POLICY))

    assert ruling.value.verdict is Verdict.WRONG_ANSWER


def test_an_output_with_the_structure_of_another_inputs_right_one_is_wrong(sit: Sit) -> None:
    """A check that broadcasts accepts an empty output for one number."""
    task = make_sort_task(
        SORT.replace(
            "torch.sort(data[0]).values", "data[0].max().reshape(1)[: int(data[0][0] > 0)]"
        ).replace("torch.equal", "torch.allclose")
    )
    stopwatch = watch(sit, "def custom_kernel(data):\n    return data[0][:0]\n", task=task)
    while stopwatch.expected.shape != (0,):  # type: ignore[union-attr]
        stopwatch.expected = stopwatch.session.code.expected(stopwatch._fresh_input())
    with pytest.raises(VerdictError, match=r"shape \[0\], \[1\] is expected"):
        measured(stopwatch)


def test_where_the_structure_is_known_to_vary_each_call_gets_that_of_its_input(sit: Sit) -> None:
    """On a GPU it defines where the judge reads the output; the candidate is not told."""
    stopwatch = watch(sit, task=POSITIVE)
    stopwatch.varies = True
    seen: list[values.Node | None] = []

    def call(
        _: object, data: object, expected: values.Node | None, *__: object, **___: object
    ) -> channel.Exchange:
        seen.append(expected)
        assert expected == stopwatch.session.code.expected(data)
        return channel.Exchange(1.0, DONE, late=True)

    candidate = cast("HostCandidate", SimpleNamespace(call=call))
    for _ in range(2):
        stopwatch._call(candidate)

    assert not candidate.told
    trusted = cast("HostCandidate", SimpleNamespace(call=lambda *_, **__: DONE))
    stopwatch._calibrated(trusted, waiting=False)
    assert not trusted.told
    assert seen[0] != seen[1]


LENGTHS = SORT.replace("size, generator", "size + seed % 97, generator")
"""Inputs of it differ in length, so nobody is told an input's structure before its window."""


@pytest.mark.parametrize(("reference", "alike"), [(LENGTHS, True), (SORT, False)])
def test_calibration_reads_as_much_as_the_call_before_it_if_inputs_differ_in_structure(
    sit: Sit, monkeypatch: pytest.MonkeyPatch, reference: str, *, alike: bool
) -> None:
    """By the calibration input, an attack that does not read its input hid up to thrice as much."""
    made: list[tuple[channel.Operation, object]] = []
    call = HostCandidate.call

    def calling(
        self: HostCandidate,
        operation: channel.Operation,
        data: object,
        *rest: Any,  # noqa: ANN401 - handed on
        **options: Any,  # noqa: ANN401 - handed on
    ) -> channel.Exchange:
        if not self.trusted:
            made.append((operation, data))
        return call(self, operation, data, *rest, **options)

    monkeypatch.setattr(HostCandidate, "call", calling)
    measured(watch(sit, task=make_sort_task(reference), rounds=RoundPolicy(looks=(1,), samples=4)))

    timed = made[-8:]  # the last four calls, each with its calibration
    assert [operation for operation, _ in timed] == [
        channel.Operation.RUN,
        channel.Operation.TOUCH,
    ] * 4
    assert [timed[at][1] is timed[at + 1][1] for at in range(0, 8, 2)] == [alike] * 4


@pytest.mark.parametrize("in_rooms", [True, False])
def test_the_output_of_a_late_call_is_checked_if_it_is_in_its_rooms(
    *, sit: Sit, monkeypatch: pytest.MonkeyPatch, in_rooms: bool
) -> None:
    checked: list[object] = []
    monkeypatch.setattr(calls, "verify", lambda *args, **_: checked.append(args))
    exchange = channel.Exchange(1.0, DONE, late=True, in_rooms=in_rooms)
    candidate = cast("HostCandidate", SimpleNamespace(call=lambda *_, **__: exchange))

    assert watch(sit)._call(candidate) is exchange
    assert len(checked) == in_rooms
