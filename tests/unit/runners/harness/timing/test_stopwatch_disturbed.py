"""Rounds on a GPU beside whose calibration something works, or which slows down."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from runners.contract.evaluation import RoundPolicy
from runners.contract.task import Mode
from runners.contract.verdict import Verdict
from runners.harness.deadline import Deadline
from runners.harness.evaluate import environment_of
from runners.harness.judge.host_candidate import HostCandidate
from runners.harness.judge.pool import CandidatePool
from runners.harness.judge.session import SLOWED_MOST
from runners.harness.supervision import process
from runners.harness.timing import rounds
from runners.harness.timing.rounds import (
    DISCARDS_MOST,
    DISTURBED_NS,
    DRIFT_MOST_NS,
    Round,
)
from runners.harness.timing.samples import SlowCalls
from runners.harness.timing.stopwatch import (
    BLAMED_MOST,
    CALIBRATED_EVERY,
    CALIBRATIONS,
    CALIBRATIONS_ALONE_MOST,
    ROUNDS_VOID_MOST,
    WorkloadTimer,
)
from runners.harness.verdicts import MachineError, VerdictError
from tests.doubles.judging import make_sort_task
from tests.unit.runners.harness.conftest import Sit
from tests.unit.runners.harness.timed import MS, make_round
from tests.unit.runners.harness.watches import (
    CALM_NS,
    candidates_on_cpu,
    measured,
    speak_as_on_gpu,
    watch,
    without_gpu,
)

SAMPLES = 4
OTHERS_TURN_NS = 2e6
"""What a window costs while another context works as well."""


class Machine:
    """A GPU that is imitated by the CPU: what its trusted windows cost is told by a test."""

    def __init__(self, stopwatch: WorkloadTimer, pool: CandidatePool) -> None:
        self.stopwatch = stopwatch
        self.pool = pool
        self.builds = 0
        """How many submissions have been imported."""
        self.lives = False
        """Whether the last one of them still lives."""
        self.looked = 0
        """How many trusted windows there were since then."""
        self.seated = 0
        """How many candidates have been in the place of the timed one."""
        self.taken = False
        """Whether one is there now."""
        self.windows_in_place = 0
        """How many trusted windows there were beside it."""
        self.cost_ns: Callable[[], float] = lambda: CALM_NS

    @property
    def trusted(self) -> int:
        """How many candidates were in that place without the submission, or are."""
        return self.seated - self.builds

    @contextmanager
    def next_candidate(self) -> Iterator[HostCandidate]:
        self.seated += 1
        self.taken = True
        with self.pool.next_candidate() as candidate:
            try:
                yield candidate
            finally:
                self.taken, self.windows_in_place = False, 0

    def overhead(self) -> float:
        self.looked += 1
        self.windows_in_place += self.taken
        return self.cost_ns()

    def built(self) -> None:
        self.builds += 1
        self.lives, self.looked = True, 0

    def round(self, calibrator: HostCandidate) -> Round:
        playing: Any = SimpleNamespace(
            next_candidate=self.next_candidate, wait_for_exits=self.wait_for_exits
        )
        self.stopwatch.pool = playing
        return self.stopwatch._next_round(calibrator, 0)

    def wait_for_exits(self) -> None:
        self.pool.wait_for_exits()
        self.lives = False


@pytest.fixture
def machine(sit: Sit, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    monkeypatch.setattr(rounds, "DRIFT_HOSTED_NS", DRIFT_MOST_NS)  # its tensors all are the CPU's
    stopwatch = watch(sit, seconds=60, rounds=RoundPolicy(looks=(1,), samples=SAMPLES))
    with CandidatePool(stopwatch.session, stopwatch.plan, None) as pool:
        candidates_on_cpu(monkeypatch)
        pool.prepare(2)
        stopwatch.session.on_gpu = True
        stopwatch.reference.source = None  # which is timed on the CPU alone
        made = Machine(stopwatch, pool)
        build = HostCandidate.build

        def building(candidate: HostCandidate, deadline: Deadline) -> None:
            build(candidate, deadline)
            made.built()

        speak_as_on_gpu(monkeypatch)
        # On a busy machine a process seems to go on while it is frozen; the imitated one is quiet.
        monkeypatch.setattr(process, "RESTING_NS", 10**12)
        monkeypatch.setattr(SlowCalls, "is_slow", lambda *_: False)  # nor are its calls slow
        monkeypatch.setattr(HostCandidate, "build", building)
        monkeypatch.setattr(HostCandidate, "overhead", lambda *_: made.overhead())
        yield made


@pytest.fixture
def time_round(machine: Machine) -> Iterator[Callable[[], Round]]:
    with machine.pool.next_candidate() as calibrator:
        yield lambda: machine.round(calibrator)


def test_work_during_calibration_that_ends_with_the_candidate_is_disallowed(
    machine: Machine, time_round: Callable[[], Round]
) -> None:
    machine.cost_ns = lambda: OTHERS_TURN_NS if machine.lives else CALM_NS

    with pytest.raises(VerdictError, match="continues to work after its calls") as ruling:
        time_round()

    assert ruling.value.verdict is Verdict.DISALLOWED
    assert (machine.builds, machine.trusted) == (BLAMED_MOST, BLAMED_MOST)


def test_who_worked_beside_the_calibration_once_has_its_round_repeated(
    machine: Machine, time_round: Callable[[], Round]
) -> None:
    machine.cost_ns = lambda: OTHERS_TURN_NS if machine.lives and machine.builds == 1 else CALM_NS

    found = time_round()

    assert (machine.builds, machine.trusted, len(found.windows)) == (2, 1, SAMPLES)


@pytest.mark.parametrize(
    ("cost_ns", "message", "seats"),
    [
        (OTHERS_TURN_NS, "a trusted kernel cannot be timed: the calibration", (1, 1)),
        (CALM_NS + DRIFT_MOST_NS + 1, "speed of this GPU changes", (ROUNDS_VOID_MOST,) * 2),
    ],
)
def test_a_disturbance_that_a_trusted_kernel_meets_too_is_the_machines_fault(
    machine: Machine,
    time_round: Callable[[], Round],
    cost_ns: float,
    message: str,
    seats: tuple[int, int],
) -> None:
    """It ends with every candidate: by the calibration alone it would seem to be its work."""
    machine.cost_ns = lambda: cost_ns if machine.windows_in_place > 2 * CALIBRATIONS else CALM_NS

    with pytest.raises(MachineError, match=message):
        time_round()

    assert (machine.builds, machine.trusted) == seats


def test_what_a_trusted_kernel_would_be_refused_for_is_the_machines_fault(
    machine: Machine, time_round: Callable[[], Round], monkeypatch: pytest.MonkeyPatch
) -> None:
    sample = WorkloadTimer._sample

    def refused(*args: Any, trusted: bool = False) -> None:  # noqa: ANN401 - as they are passed on
        if trusted:
            raise VerdictError(Verdict.DISALLOWED, "it ran while it was frozen")
        sample(*args, trusted=False)

    monkeypatch.setattr(WorkloadTimer, "_sample", refused)
    machine.cost_ns = lambda: OTHERS_TURN_NS if machine.lives else CALM_NS

    with pytest.raises(MachineError, match="a trusted kernel cannot be timed: it ran while"):
        time_round()


def test_what_goes_on_after_the_candidates_death_is_the_machines_fault(
    machine: Machine, time_round: Callable[[], Round]
) -> None:
    machine.cost_ns = lambda: OTHERS_TURN_NS if machine.builds else CALM_NS

    with pytest.raises(MachineError, match="something else works on this GPU"):
        time_round()

    assert (machine.builds, machine.lives) == (1, False)


def test_what_ends_with_the_candidates_that_live_beside_is_nobodys_fault(
    machine: Machine, time_round: Callable[[], Round]
) -> None:
    beside = ["a reference that is asked"]
    machine.stopwatch.session.extra_candidates.callback(beside.clear)
    machine.cost_ns = lambda: OTHERS_TURN_NS if machine.builds and beside else CALM_NS

    time_round()

    assert not beside
    assert (machine.builds, machine.trusted) == (2, 1)


@pytest.mark.parametrize(("excess_ns", "discarded"), [(0.0, 0), (1.0, DISCARDS_MOST)])
def test_a_few_disturbed_calls_are_repeated(
    machine: Machine, time_round: Callable[[], Round], excess_ns: float, discarded: int
) -> None:
    def cost_ns() -> float:
        early = machine.lives and machine.looked <= DISCARDS_MOST
        return CALM_NS + DISTURBED_NS + excess_ns if early else CALM_NS

    machine.cost_ns = cost_ns
    machine.stopwatch.samples.wanted = 2 * DISCARDS_MOST + 1

    found = time_round()

    assert (machine.builds, found.discarded) == (1, discarded)
    assert (len(found.windows), len(found.overheads_during)) == (
        2 * DISCARDS_MOST + 1,
        DISCARDS_MOST + 1,
    )


def test_a_round_whose_calibration_drifts_is_void_and_the_next_one_counts(
    machine: Machine, time_round: Callable[[], Round]
) -> None:
    drift_ns = {1: DRIFT_MOST_NS + 1, 2: DRIFT_MOST_NS}
    machine.cost_ns = lambda: CALM_NS + (drift_ns[machine.builds] if machine.lives else 0)

    found = time_round()

    assert (machine.builds, found.drift) == (2, DRIFT_MOST_NS)
    assert (len(found.windows), found.discarded) == (SAMPLES, 0)


@pytest.mark.parametrize("drift_ns", [DRIFT_MOST_NS + 1, -DRIFT_MOST_NS - 1])
def test_a_drift_that_comes_and_goes_with_two_candidates_is_their_work(
    machine: Machine, time_round: Callable[[], Round], drift_ns: float
) -> None:
    machine.cost_ns = lambda: CALM_NS + (drift_ns if machine.lives else 0)

    with pytest.raises(VerdictError, match="leaves work running that slows this GPU") as ruling:
        time_round()

    assert ruling.value.verdict is Verdict.DISALLOWED
    assert machine.builds == BLAMED_MOST


def test_a_drift_may_take_a_while_to_end_with_its_candidate(
    machine: Machine, time_round: Callable[[], Round]
) -> None:
    """The driver wipes the memory of whoever has died."""

    def cost_ns() -> float:
        wiping = machine.builds and not machine.lives and machine.looked - since[0] <= wiped
        if machine.lives:
            since[0] = machine.looked
        return CALM_NS + (DRIFT_MOST_NS + 1 if machine.lives or wiping else 0)

    since, wiped = [0], (CALIBRATIONS_ALONE_MOST - 1) * CALIBRATIONS
    machine.cost_ns = cost_ns

    with pytest.raises(VerdictError, match="leaves work running that slows this GPU"):
        time_round()

    assert machine.builds == BLAMED_MOST


def test_a_gpu_whose_pace_stays_changed_when_the_candidate_is_dead_is_not_fit(
    machine: Machine, time_round: Callable[[], Round]
) -> None:
    """Each candidate begins at the pace that the last one ended with: the machine drifts."""
    machine.cost_ns = lambda: CALM_NS + machine.builds * (DRIFT_MOST_NS + 1)

    with pytest.raises(MachineError, match="speed of this GPU changes too much"):
        time_round()

    assert machine.builds == ROUNDS_VOID_MOST


def test_a_drift_that_ended_once_with_its_candidate_blames_nobody(
    machine: Machine, time_round: Callable[[], Round]
) -> None:
    def cost_ns() -> float:
        gone = machine.builds == 1 and not machine.lives
        return CALM_NS + (0 if gone else machine.builds * (DRIFT_MOST_NS + 1))

    machine.cost_ns = cost_ns

    with pytest.raises(MachineError, match="speed of this GPU changes too much"):
        time_round()

    assert machine.builds == ROUNDS_VOID_MOST


def test_samples_of_a_gpu_that_protects_itself_are_left_out_and_counted_by_reason(
    machine: Machine, time_round: Callable[[], Round], monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = iter([("hardware slowdown",), (), ("hardware slowdown", "hardware power brake")])
    monkeypatch.setattr(HostCandidate, "slowed_by", lambda _: next(looks, ()))

    found = time_round()

    session = machine.stopwatch.session
    session.on_gpu = False  # else the real GPU would be asked who it is
    assert (len(found.windows), len(found.overheads_during)) == (
        SAMPLES,
        SAMPLES / CALIBRATED_EVERY,
    )
    assert found.discarded == 2
    assert environment_of(session.request, session).slowed == {
        "hardware slowdown": 2, "hardware power brake": 1,
    }  # fmt: skip


def test_the_state_of_the_gpu_is_read_while_the_last_timed_candidate_lives(
    machine: Machine, time_round: Callable[[], Round], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HostCandidate, "clocks", lambda _: {"alive": float(machine.lives)})

    time_round()

    session = machine.stopwatch.session
    session.on_gpu = False  # else the real GPU would be asked who it is
    assert environment_of(session.request, session).clocks == {"alive": 1.0}


def test_a_gpu_that_goes_on_protecting_itself_is_not_fit(
    machine: Machine, time_round: Callable[[], Round], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HostCandidate, "slowed_by", lambda _: ("hardware thermal slowdown",))
    slowed = machine.stopwatch.session.slowed
    slowed["hardware thermal slowdown"] = SLOWED_MOST - 2  # in earlier rounds

    with pytest.raises(MachineError, match=r"not run as it should: hardware thermal slowdown"):
        time_round()

    assert slowed.total() == SLOWED_MOST + 1


def test_a_sample_that_is_lost_for_two_reasons_is_lost_once(
    machine: Machine, time_round: Callable[[], Round], monkeypatch: pytest.MonkeyPatch
) -> None:
    reasons = ("hardware slowdown", "hardware power brake")
    looks = iter([reasons] * 2)
    monkeypatch.setattr(HostCandidate, "slowed_by", lambda _: next(looks, ()))
    slowed = machine.stopwatch.session.slowed
    slowed.update(dict.fromkeys(reasons, SLOWED_MOST - 2))  # in earlier rounds

    assert time_round().discarded == 2
    assert max(slowed.values()) == SLOWED_MOST


def seen_ns(time_ns: float, *, claimed: bool) -> Round:
    """A round without any noise, in which a kernel took so long."""
    return Round(
        on_gpu=True,
        windows=[time_ns + CALM_NS] * 5,
        claims=[time_ns] * 5,
        overheads_during=[CALM_NS] * 5,
        overheads_before=[CALM_NS] * 5,
        own_overheads=[CALM_NS] * 5,
        claimed=claimed,
    )


def test_a_claim_does_not_hide_from_an_audit_that_the_judges_value_cannot_be_reached(
    sit: Sit,
) -> None:
    task = make_sort_task(bytes="335000000 + 0*size")
    stopwatch = watch(sit, mode=Mode.RANKED, on_gpu=True, task=task, gpu="H100")
    windows = make_round(0.15 * MS, claim=0.1 * MS, claimed=True)

    found = stopwatch.stop_rule.audit([windows, windows])

    assert found is not None
    assert found.verdict is Verdict.AUDIT
    assert "is less than the 100.00 µs" in found.message


LEAST_NS = 100_000.0
"""The least time of the task below on the card below, at 3.35 TB/s."""


@pytest.mark.parametrize("claimed", [True, False])
@pytest.mark.parametrize(
    ("time_ns", "mode", "gpu", "audited"),
    [
        (0.96 * LEAST_NS, Mode.RANKED, "H100", False),
        (0.94 * LEAST_NS, Mode.RANKED, "H100", True),
        (0.94 * LEAST_NS, Mode.BENCHMARK, "H100", False),
        (0.94 * LEAST_NS, Mode.RANKED, "Unheard-of", False),
    ],
)
def test_a_ranked_time_that_the_card_cannot_reach_is_audited(
    *,
    sit: Sit,
    monkeypatch: pytest.MonkeyPatch,
    time_ns: float,
    mode: Mode,
    gpu: str,
    audited: bool,
    claimed: bool,
) -> None:
    task = make_sort_task(bytes="335000000 + 0*size")
    looks = RoundPolicy(looks=(2,), samples=5)
    without_gpu(monkeypatch, seen_ns(time_ns, claimed=claimed))
    stopwatch = watch(sit, mode=mode, on_gpu=True, rounds=looks, task=task, gpu=gpu)

    if not audited:
        assert measured(stopwatch).time_ns == pytest.approx(time_ns)
        return
    with pytest.raises(VerdictError, match=r"94\.00 µs is less than the 100\.00 µs") as ruling:
        measured(stopwatch)
    assert ruling.value.verdict is Verdict.AUDIT
