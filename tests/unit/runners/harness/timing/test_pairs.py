"""Pairs of rounds of a submission and its rival, with real candidates on the CPU."""

import dataclasses
import os
import time
from contextlib import AbstractContextManager, nullcontext, suppress
from types import SimpleNamespace

import psutil
import pytest

from runners.contract.comparison import PAIRS_LEAST, Ratio
from runners.contract.evaluation import Isolation, Measurement, RoundPolicy, StopReason
from runners.contract.task import IsolationLayer
from runners.contract.verdict import Verdict
from runners.harness.deadline import Deadline, TimeBudget
from runners.harness.judge.host_candidate import HostCandidate
from runners.harness.judge.pool import fresh_candidate
from runners.harness.judge.session import EvaluationSession
from runners.harness.protocol.arena import Plan
from runners.harness.protocol.values import Node
from runners.harness.timing import pairs
from runners.harness.timing.calls import ROOM, WARM_UPS, UnlikeInputError
from runners.harness.timing.clocks import own_value
from runners.harness.timing.intervals import log_interval
from runners.harness.timing.pairs import LOOKS_WIDEN, PairedTimer, of_rival
from runners.harness.timing.rounds import HIDDEN_NS, Round, Trains
from runners.harness.timing.samples import SlowCalls
from runners.harness.timing.stop_rule import StopRule
from runners.harness.timing.stopwatch import WorkloadTimer
from runners.harness.verdicts import MachineError, RivalFailedError, VerdictError
from tests.doubles.judging import SORTED
from tests.unit.runners.harness.conftest import Sit
from tests.unit.runners.harness.timed import make_round
from tests.unit.runners.harness.watches import watch

TELLING = SORTED.replace("    return", "    print(data[0].double().sum().item())\n    return")
THREE = RoundPolicy(looks=(3,), samples=3)
SAMPLES = 3


def failing(call: int) -> str:
    """A kernel that is wrong in its n-th call, after the warm-up or in it."""
    return SORTED.replace("def", "calls = []\ndef").replace(
        "    return",
        f"    calls.append(1)\n    if len(calls) == {call}: return data[1]\n    return",
    )


def paired(sit: Sit, ours: str = SORTED, theirs: str = SORTED, **changes: object) -> PairedTimer:
    settings = {"rounds": THREE} | changes
    return PairedTimer(watch(sit, ours, **settings), watch(sit, theirs, **settings))  # type: ignore[arg-type]


def budget(seconds: float = 60.0, share: float | None = None) -> TimeBudget:
    return TimeBudget(Deadline.after(seconds), Deadline.after(seconds if share is None else share))


def measured(
    timer: PairedTimer, ours: TimeBudget | None = None, theirs: TimeBudget | None = None
) -> tuple[Measurement, Ratio | VerdictError]:
    return timer.measure(ours or budget(), theirs or budget(), lambda _: None)


def told(timer: WorkloadTimer) -> list[float]:
    return [float(word) for word in bytes(timer.session.log).split()]


def test_every_round_of_both_gets_inputs_that_no_other_round_gets(sit: Sit) -> None:
    timer = paired(sit, TELLING, TELLING)

    found, ratio = measured(timer)

    assert isinstance(ratio, Ratio)
    assert (found.rounds, ratio.rounds) == (3, 3)
    ours, theirs = told(timer.ours), told(timer.theirs)
    assert min(len(ours), len(theirs)) >= 3 * (WARM_UPS + SAMPLES)
    assert len({*ours, *theirs}) == len(ours) + len(theirs)
    assert not {*ours, *theirs} & {timer.ours.calibration_input[0].double().sum().item()}


def test_between_two_rounds_only_the_calibration_candidate_lives(
    sit: Sit, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[set[int]] = []
    add_round = WorkloadTimer.add_round

    def lives(process: psutil.Process) -> bool:
        try:
            return process.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False

    def living() -> set[int]:
        processes = psutil.Process(os.getpid()).children(recursive=True)
        return {each.pid for each in processes if lives(each)}

    def spied(timer: WorkloadTimer, calibrator: HostCandidate) -> tuple[Round, float]:
        seen.append(living())
        found = add_round(timer, calibrator)
        seen.append(living())
        return found

    monkeypatch.setattr(WorkloadTimer, "add_round", spied)
    sleeper = "import subprocess\nsubprocess.Popen(['sleep', '60'])\n" + SORTED
    timer = paired(sit, SORTED, sleeper)
    before = living()

    measured(timer)

    starts = [each - before for each in seen[::2]]  # those of an earlier test may end meanwhile
    assert len(starts) == 6
    assert all(each == starts[0] for each in starts)  # nothing of an earlier round is left
    assert starts[0]
    assert living() <= before


def test_the_calibration_candidate_has_no_submission(
    sit: Sit, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources: list[str] = []
    start = fresh_candidate

    def spied(
        session: EvaluationSession, plan: Plan, expected: Node | None
    ) -> AbstractContextManager[HostCandidate]:
        sources.append(os.pread(session.files_fd, 10_000, 0).decode())
        return start(session, plan, expected)

    monkeypatch.setattr(pairs, "fresh_candidate", spied)

    measured(paired(sit))

    assert sources == ['{"submission.py": ""}']


def test_the_order_is_drawn_for_two_pairs_and_the_second_reverses_the_first(sit: Sit) -> None:
    timer = paired(sit)

    def orders(nonce: bytes) -> list[bool]:
        timer.session.nonce = nonce
        return [timer._ours_first(number) for number in range(64)]

    first, second = orders(b"one secret"), orders(b"another secret")
    for order in (first, second):
        assert all(order[n] != order[n + 1] for n in range(0, 64, 2))
        assert 6 <= sum(order[::2]) <= 26  # of 32; both orders occur
    assert first != second


def test_who_fails_first_or_second_is_the_one_that_failed(sit: Sit) -> None:
    timer = paired(sit, SORTED, failing(WARM_UPS + 2))

    found, error = measured(timer)

    assert isinstance(error, VerdictError)
    assert error.verdict is Verdict.WRONG_ANSWER
    assert found.rounds >= 3
    with pytest.raises(VerdictError) as own:
        measured(paired(sit, failing(WARM_UPS + 2), SORTED))
    assert own.value.verdict is Verdict.WRONG_ANSWER


def test_an_input_for_which_one_was_not_prepared_begins_the_pairs_of_both_again(
    sit: Sit, monkeypatch: pytest.MonkeyPatch
) -> None:
    timer = paired(sit)
    larger = dataclasses.replace(timer.ours.plan, device_size=1000)
    add_round = WorkloadTimer.add_round
    begun: list[int] = []

    def unlike_once(this: WorkloadTimer, calibrator: HostCandidate) -> tuple[Round, float]:
        begun.append(this.index)
        if len(begun) == 4:
            raise UnlikeInputError(larger, None)
        return add_round(this, calibrator)

    monkeypatch.setattr(WorkloadTimer, "add_round", unlike_once)
    found, ratio = measured(timer)

    assert isinstance(ratio, Ratio)
    assert (found.rounds, ratio.rounds) == (3, 3)
    assert len(set(begun)) == len(begun) == 4 + 6  # no round gets the inputs of a dropped one
    sizes = {each.pool.plan.device_size for each in (timer.ours, timer.theirs)}
    assert sizes == {ROOM * 1000}


def test_a_rival_that_takes_all_its_time_takes_none_of_the_submissions(sit: Sit) -> None:
    sleeping = "import time\ntime.sleep(1.5)\n" + SORTED
    timer = paired(sit, SORTED, sleeping)

    found, error = measured(timer, budget(20.0), budget(2.0))

    assert isinstance(error, VerdictError)
    assert error.verdict is Verdict.TIMED_OUT
    assert found.rounds >= 3
    assert found.stop_reason is not StopReason.TIME_CAP


def test_after_the_usual_time_only_the_least_pairs_are_timed(sit: Sit) -> None:
    policy = RoundPolicy(looks=(20,), samples=3)

    found, ratio = measured(paired(sit, rounds=policy), theirs=budget(60.0, 0.0))

    assert isinstance(ratio, Ratio)
    assert (found.rounds, ratio.rounds) == (PAIRS_LEAST, PAIRS_LEAST)
    assert found.stop_reason is StopReason.TIME_CAP


def test_time_in_which_the_other_one_runs_does_not_count(sit: Sit) -> None:
    timer = watch(sit)
    deadline, share = timer.deadline.end, timer.share.end
    begin = time.monotonic()
    with suppress(VerdictError), pairs.paused(timer):
        time.sleep(0.01)
        raise VerdictError(Verdict.CRASHED, "")
    taken = time.monotonic() - begin
    assert 0.01 <= timer.deadline.end - deadline <= taken
    assert timer.share.end - share == pytest.approx(timer.deadline.end - deadline)


@pytest.mark.parametrize("verdict", [Verdict.TASK_ERROR, Verdict.CRASHED])
def test_no_failure_of_the_rival_is_the_submissions_not_even_a_fault_of_the_task(
    verdict: Verdict,
) -> None:
    def step() -> None:
        raise VerdictError(verdict, "")

    with pytest.raises(RivalFailedError) as failed:
        of_rival(step)
    assert failed.value.error.verdict is verdict


def rounds_of(*times_ms: float, claim_ms: float = 1.0) -> list[Round]:
    """Rounds on a GPU which are so long that what a window can hide hardly matters."""
    return [
        make_round(time * 1e6 + 10_000, 10_000.0, claim_ms * 1e6, claimed=True) for time in times_ms
    ]


def test_the_ratio_is_that_of_the_judges_own_values_whatever_is_claimed() -> None:
    ours, theirs = rounds_of(99.0, 98.0, 100.0), rounds_of(100.0, 99.0, 101.0, claim_ms=90.0)

    found = pairs.ratio_of(list(zip(ours, theirs, strict=True)))

    assert found.ratio == pytest.approx(0.99, abs=1e-4)
    assert found.rounds == 3
    assert 0 < found.half_width < 0.001
    assert not found.is_tie


def test_the_interval_is_wider_for_being_looked_at_often() -> None:
    ours, theirs = rounds_of(99.0, 101.0), rounds_of(100.0, 100.0)

    found = pairs.ratio_of(list(zip(ours, theirs, strict=True)))

    plain = log_interval([0.99, 1.01])
    assert found.half_width == pytest.approx(LOOKS_WIDEN * plain.half_width, abs=1e-4)
    assert found.is_tie


def test_times_that_vary_on_purpose_make_no_tie() -> None:
    steady, delayed = [100.0, 100.4, 99.8, 100.1, 99.9], [102.0, 102.3, 250.0, 101.8, 102.1]

    as_ours = pairs.ratio_of(list(zip(rounds_of(*delayed), rounds_of(*steady), strict=True)))
    as_theirs = pairs.ratio_of(list(zip(rounds_of(*steady), rounds_of(*delayed), strict=True)))

    assert (as_ours.ratio > 1, as_ours.is_tie) == (True, False)
    assert (as_theirs.ratio < 1, as_theirs.is_tie) == (True, False)
    assert as_ours.half_width == pytest.approx(as_theirs.half_width * as_ours.ratio**2, rel=1e-2)


def test_one_round_that_is_slow_on_purpose_makes_no_tie_where_the_machine_slows_both() -> None:
    steady = [100.0, 108.0, 95.0, 103.0, 98.0]
    delayed = [one * by for one, by in zip(steady, [1.02, 1.021, 1.3, 1.019, 1.02], strict=True)]
    calm = [one * by for one, by in zip(steady, [1.0, 1.004, 1.3, 0.997, 0.999], strict=True)]

    for times, tie in ((delayed, False), (calm, True)):
        as_ours = pairs.ratio_of(list(zip(rounds_of(*times), rounds_of(*steady), strict=True)))
        as_theirs = pairs.ratio_of(list(zip(rounds_of(*steady), rounds_of(*times), strict=True)))
        assert (as_ours.ratio > 1, as_ours.is_tie) == (True, tie)
        assert (as_theirs.ratio < 1, as_theirs.is_tie) == (True, tie)


def test_two_rounds_of_five_that_are_slow_on_purpose_make_no_tie_either() -> None:
    steady = [100.0, 141.0, 81.0, 115.0, 76.0, 127.0, 92.0, 84.0]
    paces = (
        [1.021, 1.6, 1.02, 1.62, 1.019, 1.021, 1.6, 1.02],
        [1.001, 1.6, 0.998, 1.62, 1.0, 1, 1.6, 1],
    )
    for by, tie in zip(paces, (False, True), strict=True):
        times = [one * slower for one, slower in zip(steady, by, strict=True)]
        as_ours = pairs.ratio_of(list(zip(rounds_of(*times), rounds_of(*steady), strict=True)))
        as_theirs = pairs.ratio_of(list(zip(rounds_of(*steady), rounds_of(*times), strict=True)))
        assert (as_ours.ratio > 1, as_ours.is_tie) == (True, tie)
        assert (as_theirs.ratio < 1, as_theirs.is_tie) == (True, tie)


@pytest.mark.parametrize(("slow", "usual", "tie"), [(4, 1.02, False), (4, 1.0, True)])
def test_more_slow_rounds_than_by_chance_make_no_tie_either(
    slow: int, usual: float, *, tie: bool
) -> None:
    steady = [100.0, 108.0, 95.0, 103.0, 98.0, 112.0, 91.0, 104.0, 99.0, 96.0, 107.0, 93.0]
    spread = [0.004, -0.003, 0.001, -0.005, 0.002, 0.003, -0.001, -0.004, 0.005, 0.0, 0.002, -0.002]
    factors = [1.3] * slow + [usual] * (len(steady) - slow)
    delayed = [one * (by + off) for one, by, off in zip(steady, factors, spread, strict=True)]

    for ours, theirs in ((delayed, steady), (steady, delayed)):
        found = pairs.ratio_of(list(zip(rounds_of(*ours), rounds_of(*theirs), strict=True)))
        assert found.is_tie is tie


def test_one_round_that_the_machine_slows_makes_no_one_faster() -> None:
    steady, slowed = [100.0, 100.4, 99.8, 100.1, 99.9], [100.2, 100.1, 130.0, 99.9, 100.0]

    as_ours = pairs.ratio_of(list(zip(rounds_of(*slowed), rounds_of(*steady), strict=True)))
    as_theirs = pairs.ratio_of(list(zip(rounds_of(*steady), rounds_of(*slowed), strict=True)))

    assert (as_ours.ratio > 1, as_ours.is_tie) == (True, True)
    assert (as_theirs.ratio < 1, as_theirs.is_tie) == (True, True)


def test_a_short_kernel_that_refused_trains_counts_with_what_a_window_hides() -> None:
    (short,) = rounds_of(0.010)
    assert own_value(short) == pytest.approx(10_000)
    short.could_train = True
    assert own_value(short) == pytest.approx(10_000 + HIDDEN_NS)
    (long,) = rounds_of(0.021)
    long.could_train = True
    assert own_value(long) == pytest.approx(21_000)


def told_rounds(
    sit: Sit, monkeypatch: pytest.MonkeyPatch, ours: list[Round], theirs: list[Round]
) -> PairedTimer:
    """Have every round come out as these, with no process behind it."""
    timer = paired(sit, rounds=RoundPolicy(looks=(5, 8, 12, 15)))
    timer.session.on_gpu = False
    monkeypatch.setattr(SlowCalls, "was_slow", lambda *_: False)
    monkeypatch.setattr(StopRule, "audit", lambda *_: None)
    queues = {timer.ours: iter(ours), timer.theirs: iter(theirs)}

    def add_round(this: WorkloadTimer, _: object) -> tuple[Round, float]:
        timed = next(queues[this])
        this.rounds = this.trains.comparable([*this.rounds, timed])
        return timed, 0.0

    monkeypatch.setattr(WorkloadTimer, "add_round", add_round)
    timer.ours.deadline = timer.ours.share = Deadline.after(60)
    return timer


@pytest.mark.parametrize(
    ("factor", "pairs_timed", "stop"),
    [
        (0.97, 5, StopReason.PRECISE),  # one is faster
        (1.0, 15, StopReason.ROUND_CAP),  # too unsteady to say that both are equally fast
    ],
)
def test_timing_stops_once_one_of_both_is_known_to_be_faster(
    sit: Sit, monkeypatch: pytest.MonkeyPatch, factor: float, pairs_timed: int, stop: StopReason
) -> None:
    noise = [1.0 + 0.01 * (-1) ** number for number in range(15)]
    ours = rounds_of(*(100.0 * factor * each for each in noise))
    theirs = rounds_of(*(150.0 - 50.0 * each for each in noise))
    timer = told_rounds(sit, monkeypatch, ours, theirs)

    assert timer._alternate(None, lambda _: None) is stop  # type: ignore[arg-type]
    assert len(timer.pairs) == pairs_timed


def test_timing_stops_once_both_are_known_to_be_equally_fast(
    sit: Sit, monkeypatch: pytest.MonkeyPatch
) -> None:
    timer = told_rounds(sit, monkeypatch, rounds_of(*[100.0] * 15), rounds_of(*[100.0] * 15))

    assert timer._alternate(None, lambda _: None) is StopReason.PRECISE  # type: ignore[arg-type]
    assert len(timer.pairs) == 5


@pytest.mark.parametrize(
    ("factor", "late", "tied"),
    [
        (1.06, "ours", False),
        (1.06, "theirs", True),
        (0.94, "theirs", False),
        (0.94, "ours", True),
        (1.06, "both", True),
        pytest.param(1.04, "ours", True, id="by no more than the faster one's times vary"),
        pytest.param(0.96, "theirs", True, id="the same, of the rival"),
    ],
)
def test_a_slower_run_that_alone_lacks_time_for_more_pairs_is_not_tied(
    sit: Sit, monkeypatch: pytest.MonkeyPatch, factor: float, late: str, *, tied: bool
) -> None:
    times = (98.0, 100.0, 102.0)
    ours = rounds_of(*(factor * each for each in times))
    timer = told_rounds(sit, monkeypatch, ours, rounds_of(*reversed(times)))
    who = {"ours": [timer.ours], "theirs": [timer.theirs], "both": [timer.ours, timer.theirs]}
    shares = {id(each.share) for each in who[late]}
    monkeypatch.setattr(StopRule, "is_late", staticmethod(lambda _, share: id(share) in shares))
    monkeypatch.setattr(pairs, "paused", lambda _: nullcontext())

    assert timer._alternate(None, lambda _: None) is StopReason.TIME_CAP  # type: ignore[arg-type]
    assert timer._ratio().is_tie == tied
    assert timer._ratio().rounds == PAIRS_LEAST


@pytest.mark.parametrize(("slow", "tied"), [("ours", False), ("theirs", True), ("both", True)])
def test_a_submission_that_is_so_slow_that_its_timing_ends_gets_no_tie(
    sit: Sit, monkeypatch: pytest.MonkeyPatch, slow: str, *, tied: bool
) -> None:
    """Two pairs, of which the rival's differ by 10 %, gave an interval that contained 1."""
    ours, theirs = rounds_of(1e5, 6e4), rounds_of(100.0, 110.0)
    timer = told_rounds(sit, monkeypatch, ours, theirs)
    timer.made = list(zip(ours, theirs, strict=True))
    timer.ours.rounds, timer.theirs.rounds = ours, theirs
    named = {"ours": [ours], "theirs": [theirs], "both": [ours, theirs]}[slow]
    monkeypatch.setattr(SlowCalls, "was_slow", lambda _, rounds: rounds in named)

    assert timer._ratio().is_tie == tied


def host_rounds(time_us: float, skippable_us: float) -> list[Round]:
    """Five rounds on the CPU, whose windows can hide so much."""
    found = [make_round(time_us * 1e3 + 1e5, 1e5, noise=1.0, on_gpu=False) for _ in range(5)]
    for each in found:
        each.calibration_cpu_ns = [skippable_us * 1e3]
    return found


@pytest.mark.parametrize(("skippable_us", "tied"), [(119.0, False), (121.0, True)])
@pytest.mark.parametrize("late", [False, True])
def test_two_that_differ_by_less_than_a_window_on_the_cpu_can_hide_are_tied(
    sit: Sit, monkeypatch: pytest.MonkeyPatch, skippable_us: float, *, tied: bool, late: bool
) -> None:
    """A loop of its own won by a ratio of 0.38 with a half-width of 0.03."""
    one, other = (host_rounds(each, skippable_us) for each in (80.0, 200.0))
    for ours, theirs, ratio in ((one, other, 0.4), (other, one, 2.5)):
        timer = told_rounds(sit, monkeypatch, ours, theirs)
        assert timer._alternate(None, lambda _: None) is StopReason.PRECISE  # type: ignore[arg-type]
        timer.late = [timer.ours if ratio > 1 else timer.theirs] if late else []
        found = timer._ratio()
        assert found.ratio == pytest.approx(ratio)
        assert found.is_tie == tied
        assert found.unseen == pytest.approx(skippable_us / (200.0 if ratio < 1 else 80.0))


def test_what_a_window_can_hide_makes_no_tie_of_two_that_are_further_apart(
    sit: Sit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The median decided for one that is 22 % faster, and then what could hide, 3 %, was added."""
    ours, theirs = (
        [each for time_us in times for each in host_rounds(time_us, 3.0)[:1]]
        for times in ((109.0, 123.0, 111.0, 119.0, 124.0), (95.0, 87.0, 94.0, 95.0, 110.0))
    )
    timer = told_rounds(sit, monkeypatch, ours, theirs)
    timer._alternate(None, lambda _: None)  # type: ignore[arg-type]

    found = timer._ratio()

    assert found.ratio == pytest.approx(1.22, abs=0.01)
    assert found.unseen == pytest.approx(0.03, abs=0.01)
    assert not found.is_tie


def test_a_time_that_needs_an_audit_gets_more_pairs(
    sit: Sit, monkeypatch: pytest.MonkeyPatch
) -> None:
    timer = told_rounds(sit, monkeypatch, rounds_of(*[90.0] * 15), rounds_of(*[100.0] * 15))
    audit = VerdictError(Verdict.AUDIT, "too coarse")
    monkeypatch.setattr(StopRule, "audit", lambda _, rounds: audit if len(rounds) < 8 else None)

    assert timer._alternate(None, lambda _: None) is StopReason.PRECISE  # type: ignore[arg-type]
    assert len(timer.pairs) == 8


def trained(*times_us: float) -> list[Round]:
    rounds = rounds_of(*times_us)
    for each, time_us in zip(rounds, times_us, strict=True):
        each.trains = Trains(
            windows=[time_us * 1e3] * 3, calibration_windows=[0.0], calibration_claims=[0]
        )
    return rounds


def test_if_one_of_both_is_timed_by_trains_only_trains_count(
    sit: Sit, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = trained(*[19.0] * 20)
    theirs = [*rounds_of(21.0, 21.0), *trained(*[20.0] * 18)]
    timer = told_rounds(sit, monkeypatch, ours, theirs)

    timer._alternate(None, lambda _: None)  # type: ignore[arg-type]

    assert timer.theirs.trains.required
    assert len(timer.made) == 7
    found = pairs.ratio_of(timer.pairs)
    assert found.ratio == pytest.approx(0.95)
    assert found.rounds == 5


def test_all_candidates_of_a_comparison_share_one_calibration(
    sit: Sit, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = trained(*[19.0] * 5), trained(*[19.0] * 5)
    for number, each in enumerate((*ours, *theirs)):
        assert each.trains is not None
        each.trains.calibration_claims = [100.0 * number]
    timer = told_rounds(sit, monkeypatch, ours, theirs)

    timer._alternate(None, lambda _: None)  # type: ignore[arg-type]

    found = pairs.ratio_of(timer.pairs)
    assert (found.ratio, found.half_width) == pytest.approx((1.0, 0.0))
    assert found.rounds == 5


def test_a_much_longer_kernel_is_not_timed_by_trains_for_its_rival(
    sit: Sit, monkeypatch: pytest.MonkeyPatch
) -> None:
    timer = told_rounds(sit, monkeypatch, trained(*[19.0] * 20), rounds_of(*[100.0] * 20))

    timer._alternate(None, lambda _: None)  # type: ignore[arg-type]

    assert not timer.theirs.trains.required
    assert len(timer.pairs) == len(timer.made) == 5


def test_pairs_of_which_never_both_count_do_not_go_on_for_ever(
    sit: Sit, monkeypatch: pytest.MonkeyPatch
) -> None:
    timer = told_rounds(sit, monkeypatch, trained(*[19.0] * 40), rounds_of(*[0.021] * 40))

    with pytest.raises(MachineError, match="too few rounds"):
        timer._alternate(None, lambda _: None)  # type: ignore[arg-type]
    assert len(timer.made) == 30


@pytest.mark.parametrize("left", [False, True])
def test_on_a_gpu_a_round_starts_when_no_other_process_computes(
    sit: Sit, monkeypatch: pytest.MonkeyPatch, *, left: bool
) -> None:
    timer = paired(sit)
    timer.session.on_gpu = True
    done: list[object] = []
    monkeypatch.setattr(pairs, "reset_persisting_lines", lambda: done.append("persistence"))
    monkeypatch.setattr(pairs, "await_processes", lambda most: not left and most == 2)
    timer.processes = 2

    if left:
        with pytest.raises(MachineError, match="still computes"):
            timer._clear()
    else:
        timer._clear()
    assert done == ["persistence"]


@pytest.mark.parametrize("shared", [False, True])
def test_work_folders_in_a_shared_tmp_are_removed_before_the_other_one_runs(
    sit: Sit, monkeypatch: pytest.MonkeyPatch, *, shared: bool
) -> None:
    timer = paired(sit)
    layers = [
        each for each in IsolationLayer if each is not IsolationLayer.FILESYSTEM or not shared
    ]
    timer.session.isolation = Isolation(outer="none", layers=tuple(layers))
    done: list[str] = []
    monkeypatch.setattr(pairs, "remove_jobs", lambda: done.append("removed"))

    timer._clear()

    assert done == ["removed"] * shared


def test_the_rivals_session_shares_no_log_file_or_build(sit: Sit) -> None:
    session = watch(sit).session
    session.request = session.request.model_copy(update={"rival": TELLING})

    with pairs.rival_session(session) as rival:
        assert rival.request.source == TELLING
        assert "print" in os.pread(rival.files_fd, 10_000, 0).decode()
        assert rival.nonce == session.nonce
        own = ("builds", "log", "files", "durations_s", "slowed", "extra_candidates")
        assert not [name for name in own if getattr(rival, name) is getattr(session, name)]
        rival.report(SimpleNamespace())  # type: ignore[arg-type]  # nobody is told
    with pytest.raises(ValueError, match="no rival"), pairs.rival_session(watch(sit).session):
        pass
    assert dataclasses.is_dataclass(rival)
