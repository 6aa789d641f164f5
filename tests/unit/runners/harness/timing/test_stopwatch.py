import dataclasses
import math
from collections import defaultdict
from collections.abc import Callable, Container, Iterator
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from runners.contract.evaluation import RoundPolicy, StopReason
from runners.contract.task import Mode
from runners.contract.verdict import Verdict
from runners.harness.deadline import Deadline
from runners.harness.judge import host_candidate
from runners.harness.judge.host_candidate import HostCandidate
from runners.harness.protocol.channel import Exchange, Operation
from runners.harness.protocol.values import ScalarNode
from runners.harness.supervision import process
from runners.harness.supervision.process import CandidateProcess
from runners.harness.timing import calls, clocks, stop_rule, trains
from runners.harness.timing import rounds as timed_rounds
from runners.harness.timing import stopwatch as timing
from runners.harness.timing.calls import WARM_UPS
from runners.harness.timing.clocks import HONEST_NS
from runners.harness.timing.rounds import LATE_MOST, Round
from runners.harness.timing.samples import HOST_SAMPLES
from runners.harness.timing.stop_rule import StopRule
from runners.harness.timing.stopwatch import REHEARSALS
from runners.harness.verdicts import VerdictError
from runners.process_tree import thread_states
from tests.doubles.judging import SORT, SORTED, make_sort_task
from tests.unit.runners.harness.conftest import Sit
from tests.unit.runners.harness.watches import (
    ROUNDS_TOLD,
    candidates_on_cpu,
    measured,
    speak_as_on_gpu,
    two_candidates,
    watch,
    without_gpu,
)

MEASURED = Round(
    windows=[3e6, 3.1e6, 3.2e6],
    overheads_during=[1e6] * 3,
    overheads_before=[1e6] * 3,
    cpu_ns_used=[1e6] * 3,
    calibration_cpu_ns=[0.0],
)


@pytest.fixture(autouse=True)
def _ample_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no budget take samples away on a busy machine."""
    monkeypatch.setattr(stop_rule, "HOST_S", 1e4)


def test_a_narrow_interval_stops_the_timing(sit: Sit) -> None:
    ROUNDS_TOLD.clear()
    wide = RoundPolicy(looks=(2, 6), samples=3, half_width=1e99)

    stopwatch = watch(sit, rounds=wide)
    stopwatch.reference.source = None  # on a busy machine it can miss a round, and is awaited

    found = measured(stopwatch)

    assert (found.rounds, found.stop_reason) == (2, StopReason.PRECISE)
    assert ROUNDS_TOLD == [1, 2]


def test_a_wide_interval_goes_on_to_the_cap(sit: Sit) -> None:
    narrow = RoundPolicy(looks=(2, 3), samples=3, half_width=1e-9)

    found = measured(watch(sit, rounds=narrow))

    assert (found.rounds, found.stop_reason) == (3, StopReason.ROUND_CAP)


def test_a_near_deadline_stops_the_timing_with_fewer_samples(sit: Sit) -> None:
    slow = SORTED.replace("    return", "    import time; time.sleep(0.05)\n    return")
    policy = RoundPolicy(looks=(5,), samples=30)

    found = measured(watch(sit, slow, seconds=3.0, rounds=policy))

    assert found.stop_reason is StopReason.TIME_CAP
    assert all(3 <= len(samples) < 30 for samples in found.samples)


def test_every_candidate_is_a_fresh_one(sit: Sit) -> None:
    counting = SORTED.replace("def", "calls = []\ndef").replace(
        "    return", "    calls.append(1); print(len(calls))\n    return"
    )
    stopwatch = watch(sit, counting, rounds=RoundPolicy(looks=(2,), samples=4))

    found = measured(stopwatch)

    printed = [int(word) for word in bytes(stopwatch.session.log).split()]
    second = printed.index(1, 1)
    for counted in (printed[:second], printed[second:]):
        assert counted == list(range(1, len(counted) + 1))
    repeated = found.discarded + found.left_out  # on a busy machine
    assert len(printed) == 14 + repeated


def test_no_two_calls_get_the_same_input(sit: Sit) -> None:
    """Neither of one candidate nor of two, and none is that of the calibration."""
    telling = SORTED.replace("    return", "    print(data[0].double().sum().item())\n    return")
    stopwatch = watch(sit, telling, rounds=RoundPolicy(looks=(2,), samples=4))

    measured(stopwatch)

    seen = [float(word) for word in bytes(stopwatch.session.log).split()]
    assert len(seen) >= 2 * (WARM_UPS + 4)
    assert len({*seen, stopwatch.calibration_input[0].double().sum().item()}) == len(seen) + 1


@pytest.mark.parametrize("call", [2, 5])
def test_every_output_is_checked_even_of_the_warm_up(sit: Sit, call: int) -> None:
    cheating = SORTED.replace("def", "calls = []\ndef").replace(
        "    return",
        f"    calls.append(1)\n    if len(calls) == {call}: return data[1]\n    return",
    )

    with pytest.raises(VerdictError) as ruling:
        measured(watch(sit, cheating))

    assert ruling.value.verdict is Verdict.WRONG_ANSWER


def test_a_task_without_a_reference_kernel_is_timed_as_well(sit: Sit) -> None:
    unnamed = make_sort_task(SORT.replace("ref_kernel", "right_answer"))

    stopwatch = watch(sit, task=unnamed)

    assert stopwatch.expected is None
    assert measured(stopwatch).rounds == 2


def test_a_longer_kernel_takes_longer_by_its_own_time(sit: Sit) -> None:
    def slowed(seconds: float) -> str:
        return SORTED.replace("    return", f"    import time; time.sleep({seconds})\n    return")

    short, long = (measured(watch(sit, slowed(seconds))).time_ns for seconds in (0.01, 0.11))

    assert long - short == pytest.approx(100e6, rel=0.2)


def test_slow_warm_ups_do_not_choose_how_many_calls_are_timed(sit: Sit) -> None:
    slow_at_first = SORTED.replace("def", "import time\ncalls = []\ndef").replace(
        "    return",
        "    calls.append(1)\n    time.sleep(1 if len(calls) < 4 else 0)\n    return",
    )
    policy = RoundPolicy(looks=(2,), samples=12)

    found = measured(watch(sit, slow_at_first, seconds=22, rounds=policy))

    assert [len(samples) for samples in found.samples] == [HOST_SAMPLES] * 2


def ran_while_frozen(of: HostCandidate, at: set[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the machine look busy, as often as checks of this candidate are counted in `at`."""
    asked: list[int] = []
    confirm = CandidateProcess.verify_frozen

    def counting(subject: CandidateProcess) -> None:
        confirm(subject)
        if subject is of.handle.process:
            asked.append(1)
            subject.ran_while_frozen += len(asked) in at

    monkeypatch.setattr(CandidateProcess, "verify_frozen", counting)


def test_a_call_beside_which_something_ran_is_repeated(
    sit: Sit, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopwatch = watch(sit, rounds=RoundPolicy(looks=(1,), samples=4))
    with two_candidates(stopwatch) as (candidate, calibrator):
        ran_while_frozen(candidate, set(range(1, 300, 13)), monkeypatch)
        found = stopwatch._timed_round(candidate, calibrator, 0)

    assert 0 < found.discarded == len(found.repeated) <= 4
    assert {
        len(found.windows),
        len(found.overheads_during),
        len(found.cpu_ns_used),
        len(found.claims),
    } == {4}


def test_a_kernel_that_always_runs_while_frozen_is_refused(
    sit: Sit, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopwatch = watch(sit, rounds=RoundPolicy(looks=(1,), samples=4))
    with two_candidates(stopwatch) as (candidate, calibrator):
        ran_while_frozen(candidate, set(range(1000)), monkeypatch)
        with pytest.raises(VerdictError, match="continues to work after its calls") as ruling:
            stopwatch._timed_round(candidate, calibrator, 0)

    assert ruling.value.verdict is Verdict.DISALLOWED


GPU_LOOKS = RoundPolicy(looks=(2, 4), samples=5)
WANTED = ScalarNode(value=1)


def seen_on_gpu(claimed_ns: float, confirmed_ns: float) -> Round:
    """A round without any noise."""
    return Round(
        on_gpu=True,
        windows=[confirmed_ns + 10_000.0] * 5,
        claims=[claimed_ns] * 5,
        overheads_during=[10_000.0] * 5,
        overheads_before=[10_000.0] * 5,
        own_overheads=[10_000.0] * 5,
        claimed=True,
    )


@pytest.mark.parametrize(
    ("claimed_us", "confirmed_us", "mode", "stop"),
    [
        (100, 100, Mode.RANKED, StopReason.PRECISE),
        (3, 3, Mode.RANKED, None),  # the judge sees no finer than 4 us
        (50, 52.5, Mode.RANKED, None),  # it is further below the bound than honest claims
        (50, 52.5, Mode.BENCHMARK, None),
    ],
)
def test_on_a_gpu_only_a_confirmed_claim_is_precise(
    sit: Sit, claimed_us: float, confirmed_us: float, mode: Mode, stop: StopReason | None
) -> None:
    stopwatch = watch(sit, mode=mode, on_gpu=True, rounds=GPU_LOOKS)
    rounds = [seen_on_gpu(claimed_us * 1e3, confirmed_us * 1e3)] * 2

    assert stopwatch.stop_rule.reason(rounds, 0.0, stopwatch.share) is stop
    assert stopwatch.stop_rule.reason(rounds * 2, 0.0, stopwatch.share) is (
        stop or StopReason.ROUND_CAP
    )


@pytest.mark.parametrize(("apart_ns", "stop"), [(18.0, StopReason.PRECISE), (21.0, None)])
def test_a_short_kernel_on_a_gpu_is_precise_at_a_wider_interval(
    sit: Sit, apart_ns: float, stop: StopReason | None
) -> None:
    stopwatch = watch(sit, on_gpu=True, rounds=GPU_LOOKS)
    # Of two rounds the half-width is 12.7 times how far each lies from the middle: 229 and 267 ns.
    rounds = [seen_on_gpu(each, each) for each in (5_000.0 - apart_ns, 5_000.0 + apart_ns)]

    assert stopwatch.stop_rule.reason(rounds, 0.0, stopwatch.share) is stop


@pytest.mark.parametrize("mode", [Mode.RANKED, Mode.BENCHMARK])
def test_a_claim_that_stays_unconfirmed_is_raised(
    sit: Sit, monkeypatch: pytest.MonkeyPatch, mode: Mode
) -> None:
    without_gpu(monkeypatch, seen_on_gpu(50_000.0, 52_500.0))

    found = measured(watch(sit, mode=mode, on_gpu=True, rounds=GPU_LOOKS))

    assert (round(found.claimed_ns or 0), round(found.bound_ns)) == (50_000, 52_500)
    assert round(found.time_ns) == 52_500 - HONEST_NS


def test_on_a_gpu_calibration_comes_before_the_submission_and_cpu_time_is_not_taken(
    sit: Sit, monkeypatch: pytest.MonkeyPatch
) -> None:
    speak_as_on_gpu(monkeypatch)
    stopwatch = watch(sit, rounds=RoundPolicy(looks=(1,), samples=3))
    with two_candidates(stopwatch) as (candidate, calibrator):
        stopwatch.session.on_gpu = True
        steps: list[str] = []
        build, touch = candidate.build, stopwatch._calibration_call

        def building(deadline: Deadline) -> None:
            steps.append("build")
            build(deadline)

        monkeypatch.setattr(candidate, "build", building)

        def touching(
            candidate: HostCandidate, *, waiting: bool = False, like: object = None
        ) -> Exchange:
            assert like is None
            steps.append(
                "waiting" if waiting else "own" if candidate is not calibrator else "trusted"
            )
            return touch(candidate, waiting=waiting)

        monkeypatch.setattr(stopwatch, "_calibration_call", touching)
        found = stopwatch._timed_round(candidate, calibrator, 0)

    count = timing.CALIBRATIONS
    waits = ["waiting"] * timing.WAITING_CALIBRATIONS
    assert steps == ["own", "trusted"] * count + waits + ["build"] + ["trusted"] * 2
    assert (len(found.own_overheads), len(found.overheads_before), len(found.overheads_during)) == (
        count,
        count,
        2,
    )
    assert (len(found.windows), found.cpu_ns_used, found.claimed) == (3, [], True)


class Rehearsing:
    """Has the seats of a GPU be imitated by seats of the CPU, whose calls go as is told here."""

    def __init__(self, candidate: HostCandidate, monkeypatch: pytest.MonkeyPatch) -> None:
        speak_as_on_gpu(monkeypatch)
        self.next_candidate = candidate
        self.calls: list[bool] = []
        """Of every call of the kernel after the warm-up: whether it was to be ahead."""
        self.late: Callable[[int], bool] = lambda _: False
        """By its number, from 1 on, whether a call that should be ahead is not queued in time."""
        self.looked: list[object] = []
        """The replies that were looked at."""
        self.plain = candidate.call
        self.made = 0
        monkeypatch.setattr(candidate, "call", self.call)

        def verify(*args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - handed on
            self.looked.append(args)
            host_candidate.verify(*args, **kwargs)

        monkeypatch.setattr(calls, "verify", verify)

    def call(
        self,
        operation: Operation,
        *args: Any,  # noqa: ANN401 - handed on
        **options: Any,  # noqa: ANN401 - handed on
    ) -> Exchange:
        exchange = self.plain(operation, *args, **options)
        self.made += operation is Operation.RUN
        if operation is not Operation.RUN or self.made <= WARM_UPS:
            assert not self.next_candidate.ahead or operation is not Operation.RUN
            return exchange
        self.calls.append(self.next_candidate.ahead)
        late = self.next_candidate.ahead and self.late(len(self.calls))
        return dataclasses.replace(exchange, late=late)


@pytest.fixture
def rehearsing(
    sit: Sit, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Rehearsing, Callable[[], Round]]]:
    stopwatch = watch(sit, rounds=RoundPolicy(looks=(1,), samples=6))
    with two_candidates(stopwatch) as (candidate, calibrator):
        stopwatch.session.on_gpu = True
        yield (
            Rehearsing(candidate, monkeypatch),
            lambda: stopwatch._timed_round(candidate, calibrator, 0),
        )


def counts(found: Round) -> tuple[int, int, int]:
    return len(found.windows), len(found.claims), len(found.overheads_during)


def test_calls_that_are_queued_in_time_are_claimed(
    rehearsing: tuple[Rehearsing, Callable[[], Round]],
) -> None:
    rehearsal, round_of = rehearsing

    found = round_of()

    assert (found.claimed, found.remote, found.discarded, counts(found)) == (
        True, False, 0, (6, 6, 3),
    )  # fmt: skip
    assert rehearsal.calls == [True] * (REHEARSALS + 6)
    assert len(rehearsal.looked) == WARM_UPS + REHEARSALS + 6


def test_of_a_seat_whose_memory_is_on_the_host_the_round_knows_it(
    rehearsing: tuple[Rehearsing, Callable[[], Round]],
) -> None:
    rehearsal, round_of = rehearsing
    rehearsal.next_candidate.remote = True

    assert round_of().remote


def test_the_first_rehearsal_may_be_late(
    rehearsing: tuple[Rehearsing, Callable[[], Round]],
) -> None:
    rehearsal, round_of = rehearsing
    rehearsal.late = lambda number: number < REHEARSALS

    found = round_of()

    assert (found.claimed, found.discarded, counts(found)) == (True, 0, (6, 6, 3))
    assert rehearsal.calls == [True] * (REHEARSALS + 6)


def test_who_is_late_at_the_last_rehearsal_is_timed_by_the_judges_own_clock(
    rehearsing: tuple[Rehearsing, Callable[[], Round]],
) -> None:
    rehearsal, round_of = rehearsing
    rehearsal.late = lambda number: number == REHEARSALS

    found = round_of()

    assert (found.claimed, found.discarded, counts(found)) == (False, 0, (6, 6, 3))
    assert rehearsal.calls == [True] * REHEARSALS + [False] * 6


def test_a_few_late_calls_are_left_out_and_repeated(
    rehearsing: tuple[Rehearsing, Callable[[], Round]],
) -> None:
    rehearsal, round_of = rehearsing
    rehearsal.late = lambda number: number - REHEARSALS in (1, 3, 4)

    found = round_of()

    assert (found.claimed, found.discarded, found.late) == (True, LATE_MOST, LATE_MOST)
    assert counts(found) == (6, 6, 3)
    assert rehearsal.calls == [True] * (REHEARSALS + 6 + LATE_MOST)


def test_where_calls_go_on_being_late_all_are_made_anew_by_the_judges_own_clock(
    rehearsing: tuple[Rehearsing, Callable[[], Round]],
) -> None:
    rehearsal, round_of = rehearsing
    rehearsal.late = lambda number: number > REHEARSALS + 2

    found = round_of()

    assert (found.claimed, found.discarded, found.late) == (False, LATE_MOST + 1, 0)
    assert counts(found) == (6, 6, 1 + 3)  # every calibration is kept
    assert rehearsal.calls == [True] * (REHEARSALS + 2 + LATE_MOST + 1) + [False] * 6


KEPT, LEFT_OUT, CALIBRATED = "k", "l", "c"


def test_only_the_time_of_calls_counts_towards_their_precedence(sit: Sit) -> None:
    """A slow import ended the precedence of one of two submissions that are compared."""
    stopwatch = watch(sit)

    with stopwatch._preceding():
        pass

    assert 0 < stopwatch.stop_rule.preceded_s < 1


@pytest.fixture
def calm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no call be repeated because other tests run at the same time."""
    monkeypatch.setattr(process, "RESTING_NS", math.inf)
    for name in ("DISTURBED_NS", "WAITED_NS"):
        monkeypatch.setattr(timed_rounds, name, math.inf)


@pytest.mark.usefixtures("calm")
@pytest.mark.parametrize(
    ("late", "steps"),
    [
        ((), "kc k kc k kc k"),
        ((1, 4), "lc kc k lc kc k kc k"),  # beside the call that is made in a late one's stead
        ((2,), "kc l k kc k kc k"),
        (range(4, 50), "kc k kc l l l l kc k kc k kc k"),  # from the restart on as at the start
    ],
)
def test_on_a_gpu_a_calibration_stands_beside_every_second_sample_that_counts(
    sit: Sit, monkeypatch: pytest.MonkeyPatch, late: Container[int], steps: str
) -> None:
    stopwatch = watch(sit, rounds=RoundPolicy(looks=(1,), samples=6))
    made: list[str] = []
    call, touch = stopwatch._call, stopwatch._calibration_call

    def calling(candidate: HostCandidate, *_: object) -> Exchange:
        exchange = call(candidate)
        made.append(LEFT_OUT if exchange.late else KEPT)
        return exchange

    def touching(candidate: HostCandidate, **options: Any) -> Exchange:  # noqa: ANN401 - handed on
        made.append(CALIBRATED)
        return touch(candidate, **options)

    with two_candidates(stopwatch) as (candidate, calibrator):
        stopwatch.session.on_gpu = True
        rehearsal = Rehearsing(candidate, monkeypatch)
        rehearsal.late = lambda number: number - REHEARSALS in late
        monkeypatch.setattr(stopwatch, "_call", calling)
        monkeypatch.setattr(stopwatch, "_calibration_call", touching)
        stopwatch._timed_round(candidate, calibrator, 0)

    before = 2 * timing.CALIBRATIONS + timing.WAITING_CALIBRATIONS + WARM_UPS + REHEARSALS
    assert "".join(made[before:]) == steps.replace(" ", "")


class Standing:
    """Who stood still after each order of a whole measurement, as the system tells it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.after: dict[int, list[tuple[str, bool]]] = defaultdict(list)
        """By process: every order, and whether all threads stood still after it."""
        call, build = HostCandidate.call, HostCandidate.build

        def calling(
            candidate: HostCandidate,
            operation: Operation,
            *args: Any,  # noqa: ANN401 - handed on
            **options: Any,  # noqa: ANN401 - handed on
        ) -> Exchange:
            exchange = call(candidate, operation, *args, **options)
            self.note(candidate, operation)
            return exchange

        def building(candidate: HostCandidate, deadline: Deadline) -> None:
            build(candidate, deadline)
            self.note(candidate, Operation.BUILD)

        monkeypatch.setattr(HostCandidate, "call", calling)
        monkeypatch.setattr(HostCandidate, "build", building)
        monkeypatch.setattr(StopRule, "is_precise", lambda *_: False)
        monkeypatch.setattr(clocks, "measurement", lambda *_, **__: None)
        speak_as_on_gpu(monkeypatch)
        candidates_on_cpu(monkeypatch)

    def note(self, candidate: HostCandidate, operation: Operation) -> None:
        pid = candidate.handle.process.pid
        still = set(thread_states(pid).values()) == {"T"}
        assert still is candidate.handle.process.frozen
        self.after[pid].append((operation, still))


@pytest.mark.usefixtures("calm")
@pytest.mark.parametrize("on_gpu", [True, False])
def test_whoever_holds_no_submitted_code_runs_on_between_its_orders_on_a_gpu_alone(
    *, sit: Sit, monkeypatch: pytest.MonkeyPatch, on_gpu: bool
) -> None:
    stood = Standing(monkeypatch)
    policy = RoundPolicy(looks=(2,), samples=3)

    measured(watch(sit, mode=Mode.BENCHMARK, on_gpu=on_gpu, rounds=policy))

    calibrator, *others = stood.after.values()
    own = [each for each in others if each[0][0] is Operation.TOUCH]  # the reference has no such
    calibrated = timing.CALIBRATIONS + 2 if on_gpu else timing.HOST_CALIBRATIONS + 3
    assert calibrator == [(Operation.TOUCH, not on_gpu)] * (timing.SETTLING + 2 * calibrated)
    before = timing.CALIBRATIONS + timing.WAITING_CALIBRATIONS
    trusted = timing.SETTLING + (before if on_gpu else timing.HOST_CALIBRATIONS)
    runs = WARM_UPS + (REHEARSALS if on_gpu else 0) + 3
    of_own = [(Operation.TOUCH, not on_gpu)] * trusted
    of_own += [(Operation.BUILD, True)] + [(Operation.RUN, True)] * runs
    assert own == [of_own] * 2


def test_of_a_late_call_nothing_is_looked_at(
    rehearsing: tuple[Rehearsing, Callable[[], Round]],
) -> None:
    rehearsal, round_of = rehearsing
    rehearsal.late = lambda number: number in (1, REHEARSALS + 2)

    round_of()

    assert len(rehearsal.looked) == WARM_UPS + REHEARSALS - 1 + 6


def test_before_the_import_a_trusted_kernel_shows_how_long_a_wait_for_the_input_is(
    rehearsing: tuple[Rehearsing, Callable[[], Round]],
) -> None:
    kernel, time_round = rehearsing
    waits: list[bool] = []
    plain = kernel.plain

    def call(*args: Any, **options: Any) -> Exchange:  # noqa: ANN401 - handed on
        exchange = plain(*args, **options)
        waits.append(options.get("waiting", False))
        return dataclasses.replace(exchange, window_ns=7e9) if waits[-1] else exchange

    kernel.plain = call
    kernel.late = lambda number: True

    timed = time_round()

    assert waits.count(True) == timing.WAITING_CALIBRATIONS == len(timed.waiting_windows)
    assert not any(waits[waits.index(True) + timing.WAITING_CALIBRATIONS :])
    assert 6.9e9 < timed.bound <= 7e9


def test_on_the_cpu_no_call_is_ahead_and_none_is_rehearsed(
    sit: Sit, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopwatch = watch(sit, rounds=RoundPolicy(looks=(1,), samples=3))
    with two_candidates(stopwatch) as (candidate, calibrator):
        rehearsal = Rehearsing(candidate, monkeypatch)
        found = stopwatch._timed_round(candidate, calibrator, 0)

    assert rehearsal.calls == [False] * 3
    assert (found.claimed, counts(found)) == (False, (3, 3, 3))


def test_every_look_has_its_candidates_started_at_once_on_a_gpu_and_the_anchor_first(
    sit: Sit,
) -> None:
    stopwatch = watch(sit, on_gpu=True, rounds=RoundPolicy(looks=(3, 20)))
    asked: list[int] = []
    early: list[int] = []
    pool: Any = SimpleNamespace(waiting=[], begin=early.append, prepare=asked.append)
    stopwatch.pool = pool

    stopwatch.begin()
    stopwatch._prepare(1, 0)
    stopwatch._prepare(0, 3)
    stopwatch._prepare(0, 17)
    pool.waiting = [1]
    stopwatch._prepare(0, 18)
    pool.waiting = []
    stopwatch.session.on_gpu = False
    stopwatch._prepare(1, 0)
    stopwatch.begin()

    assert asked == [4, calls.STARTS_MOST, 3]
    assert early == [4]


@pytest.mark.parametrize("early", [True, False])
def test_every_workload_has_places_for_trains_and_they_are_reserved_once(
    *, sit: Sit, monkeypatch: pytest.MonkeyPatch, early: bool
) -> None:
    """Only the first one had: the others' timers were not begun before they measured."""
    counts = iter((16, 8))
    monkeypatch.setattr(trains, "place_count", lambda *_: next(counts))
    pool = without_gpu(monkeypatch, seen_on_gpu(100_000.0, 100_000.0))

    stopwatch = watch(sit, on_gpu=True, mode=Mode.RANKED)
    if early:
        stopwatch.begin()
    measured(stopwatch)

    assert (pool.places, stopwatch.trains.places) == (16, 16)


def test_on_a_gpu_outputs_whose_structure_depends_on_the_values_get_no_trains(
    sit: Sit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trains, "place_count", lambda *_: 16)
    positive = make_sort_task(SORT.replace("torch.sort(data[0]).values", "data[0][data[0] > 0]"))

    for task, varies in ((positive, True), (make_sort_task(), False)):
        pool = without_gpu(monkeypatch, seen_on_gpu(100_000.0, 100_000.0))
        pool.places, pool.expected = 0, WANTED
        stopwatch = watch(sit, on_gpu=True, mode=Mode.RANKED, task=task)
        stopwatch.begin()
        assert stopwatch.varies is varies
        assert (pool.places, pool.expected) == ((0, None) if varies else (16, WANTED))


def test_without_a_reference_kernel_a_candidate_on_the_gpu_tells_the_outputs_structure(
    sit: Sit, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    def call(*_: object) -> SimpleNamespace:
        done.append("call")
        return SimpleNamespace(reply=None)

    candidate = SimpleNamespace(
        build=lambda _: done.append("build"),
        call=call,
        discovered=WANTED,
    )
    monkeypatch.setattr(timing, "verify", lambda *_, **__: done.append("verify"))
    monkeypatch.setattr(timing, "fresh_candidate", lambda *_: nullcontext(candidate))
    unnamed = make_sort_task(SORT.replace("ref_kernel", "right_answer"))

    pool = without_gpu(monkeypatch, seen_on_gpu(100_000.0, 100_000.0))

    stopwatch = watch(sit, on_gpu=True, task=unnamed)
    stopwatch.begin()  # nobody can start before it is known what they have to fill
    measured(stopwatch)
    assert stopwatch.expected == pool.expected == WANTED
    assert done == ["build", "call", "verify"]
    measured(watch(sit, on_gpu=True))
    assert done == ["build", "call", "verify"]


def test_only_at_a_look_may_timing_stop_for_being_precise(
    sit: Sit, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopwatch = watch(sit, rounds=RoundPolicy(looks=(2, 4)))
    monkeypatch.setattr(StopRule, "is_precise", lambda *_: True)

    stops = [
        stopwatch.stop_rule.reason([MEASURED] * count, 0.0, stopwatch.share)
        for count in (1, 2, 3, 4)
    ]

    assert stops == [None, StopReason.PRECISE, None, StopReason.PRECISE]


def test_one_round_is_never_precise(sit: Sit) -> None:
    stopwatch = watch(sit, rounds=RoundPolicy(looks=(1, 2), half_width=1000.0))

    assert not stopwatch.stop_rule.is_precise([MEASURED])
    assert stopwatch.stop_rule.is_precise([MEASURED] * 2)


def test_a_round_that_would_pass_the_share_is_not_begun(sit: Sit) -> None:
    stopwatch = watch(sit)
    stopwatch.share = Deadline.after(1.2)

    assert stopwatch.stop_rule.reason([MEASURED], 1.0, stopwatch.share) is StopReason.TIME_CAP
    assert stopwatch.stop_rule.reason([MEASURED], 0.5, stopwatch.share) is None


def test_every_timed_call_has_a_calibration_with_what_it_used_beside_its_own_reading(
    sit: Sit, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[Round] = []
    touched: list[Exchange] = []
    stopwatch = watch(sit)
    touch = stopwatch._calibration_call

    def touching(candidate: HostCandidate, **options: Any) -> Exchange:  # noqa: ANN401 - handed on
        touched.append(touch(candidate, **options))
        return touched[-1]

    monkeypatch.setattr(clocks, "measurement", lambda rounds, *_, **__: taken.extend(rounds))
    monkeypatch.setattr(stopwatch, "_calibration_call", touching)

    measured(stopwatch)

    beside = {each.cpu_ns - each.reply.claimed_cpu_ns for each in touched}
    for each in taken:
        counts = {
            len(found)
            for found in (
                each.windows,
                each.overheads_during,
                each.cpu_ns_used,
                each.calibration_cpu_ns,
            )
        }
        assert counts == {5}
        assert beside.issuperset(each.calibration_cpu_ns)
