"""Which kernels are timed by trains, and what one train does; no GPU is needed."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from runners.contract.task import Mode
from runners.contract.verdict import Verdict
from runners.harness.deadline import Deadline
from runners.harness.gpu.handover import TrainCall
from runners.harness.judge.answer import Place
from runners.harness.judge.device_candidate import DeviceCandidate
from runners.harness.judge.session import EvaluationSession
from runners.harness.protocol.arena import Plan
from runners.harness.protocol.channel import (
    CandidateReply,
    CandidateRequest,
    Exchange,
    Operation,
    Status,
)
from runners.harness.protocol.values import ScalarNode, TensorNode
from runners.harness.timing import trains
from runners.harness.timing.rounds import (
    DISCARDS_MOST,
    HIDDEN_NS,
    SHORT_NS,
    DisturbedError,
    Round,
    Trains,
)
from runners.harness.timing.trains import (
    CALIBRATED_AFTER,
    UNSTAMPED_COMPARED,
    ShortCalls,
    TrainRunner,
)
from runners.harness.verdicts import VerdictError
from tests.unit.runners.harness.timed import MS, make_round

CALLS = 3
PLACES_AT, PLACE_SIZE, INPUT_SIZE = 4096, 1024, 512
EXPECTED = ScalarNode(value=0)
DEADLINE = Deadline.after(1_000_000)


class Handle:
    """Plays a candidate that queues its calls, or is late."""

    def __init__(self) -> None:
        self.orders: list[CandidateRequest] = []
        self.late = False
        self.thawed = False
        self.outputs = tuple(ScalarNode(value=number) for number in range(CALLS))
        self.claims: tuple[float, ...] | None = (1.0, 2.0, 3.0)
        self.ended = False

    def end(self) -> None:
        self.ended = True

    def call_on_device(self, order: bytes, _: Deadline, call: TrainCall) -> Exchange:
        self.orders.append(CandidateRequest.model_validate_json(order))
        done = CandidateReply(status=Status.DONE, outputs=self.outputs)
        call.late = self.late
        call.stage()
        if not self.late:
            call.actions.queued(done)
            for place in call.actions.places:
                place.reveal()
                place.complete()
                place.capture()
        return Exchange(
            0.0, done.model_copy(update={"claims_ns": self.claims}), late=self.late or self.thawed
        )


class Driver:
    """The driver of that candidate, which notes what it does and where."""

    def __init__(self) -> None:
        self.handle = Handle()
        self.done: list[tuple[str, int]] = []
        self.buffers = SimpleNamespace(
            places_at=PLACES_AT,
            place_size=PLACE_SIZE,
            staging=torch.zeros(INPUT_SIZE, dtype=torch.uint8),
            memory=SimpleNamespace(bytes=torch.zeros(PLACES_AT + CALLS * PLACE_SIZE)),
            flush_cache=lambda: None,
            check_free_memory=lambda: self.done.append(("memory", 0)),
        )
        self.device_base = 0
        self.handover = SimpleNamespace(turn=0, abort=lambda: self.done.append(("abort", 0)))
        withheld = cast("Any", Withheld())
        self.place = Place(0, cast("Any", Answer(self, 0)), self.buffers.staging, withheld)

    @property
    def answer(self) -> "Answer":
        return cast("Answer", self.place.answer)

    def stage(self, node: object, value: object) -> None:
        self.done.append(("stage", self.place.shift))


class Answer:
    """The output of one call in one place."""

    room = ScalarNode(value=7)
    rooms: tuple[TensorNode, ...] = ()

    def __init__(self, driver: Driver, shift: int) -> None:
        self.driver = driver
        self.shift = shift

    def expect(self, _: object) -> None: ...

    def places(self, output: ScalarNode) -> ScalarNode:
        return output

    def poison(self) -> None:
        self.driver.done.append(("poison", self.shift))

    def poison_again(self) -> None:
        self.driver.done.append(("poison again", self.shift))

    def expect_at(self, output: ScalarNode) -> None:
        self.driver.done.append((f"expect {output.value}", self.shift))

    def capture(self) -> None:
        self.driver.done.append(("capture", self.shift))


class Withheld:
    """Lines of an input that appear last."""

    def reveal(self, here: torch.Tensor) -> None:
        assert here.numel() == INPUT_SIZE

    def restore(self) -> None: ...


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    made = Driver()
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(
        trains, "Answer", lambda buffers, base, *, remote, shift: Answer(made, shift)
    )
    monkeypatch.setattr(trains, "Withheld", lambda staging: Withheld())
    windows = SimpleNamespace(
        handover=made.handover, windows_ns=lambda: [10.0, 20.0], abort=made.handover.abort
    )
    monkeypatch.setattr(trains, "TrainWindows", lambda handover, calls: windows)

    def verify(
        candidate: Driver, value: object, reply: CandidateReply, *_: object, **__: object
    ) -> None:
        assert isinstance(reply.output, ScalarNode)
        candidate.done.append((f"verify {value} {reply.output.value}", candidate.place.shift))

    monkeypatch.setattr(trains, "verify", verify)
    return made


def track(driver: Driver) -> TrainRunner:
    return TrainRunner(cast("DeviceCandidate", driver), CALLS)


def shifts() -> list[int]:
    return [PLACES_AT + number * PLACE_SIZE for number in range(CALLS)]


def test_every_answer_of_a_train_is_checked_in_its_place(driver: Driver) -> None:
    found = track(driver).run(Operation.RUN, [5, 5, 5], EXPECTED, DEADLINE, stamped=True)

    assert found is not None
    assert (found.windows, found.claims) == ((10.0, 20.0), (2.0, 3.0))
    (order,) = driver.handle.orders
    assert order.train is not None
    assert (order.train.calls, order.train.first, order.train.stride) == (3, PLACES_AT, PLACE_SIZE)
    assert (order.ahead, order.train.stamped) == (True, True)
    assert driver.done == [
        *(("stage", shift) for shift in shifts()),
        *((f"expect {number}", shift) for number, shift in enumerate(shifts())),
        *((what, shift) for shift in shifts() for what in ("poison", "poison again", "capture")),
        ("memory", 0),
        *((f"verify 5 {number}", shift) for number, shift in enumerate(shifts())),
    ]
    assert driver.place.shift == 0


def test_the_standins_input_is_staged_once_and_its_outputs_are_in_their_rooms(
    driver: Driver,
) -> None:
    mine = track(driver)
    driver.handle.claims = None
    for _ in range(2):
        assert mine.run(Operation.TOUCH, [5] * 3, EXPECTED, DEADLINE, stamped=False)
    assert [what for what, _ in driver.done].count("stage") == CALLS
    assert {what for what, _ in driver.done} == {
        *("stage", "expect 7", "poison", "poison again", "capture"),
    }
    driver.handle.claims = (1.0, 1.0, 1.0)
    assert mine.run(Operation.RUN, [5] * 3, EXPECTED, DEADLINE, stamped=True)
    assert [what for what, _ in driver.done].count("stage") == 2 * CALLS


def test_a_train_that_needs_the_cpu_tells_nothing(driver: Driver) -> None:
    driver.handle.thawed = True
    assert track(driver).run(Operation.RUN, [5] * 3, EXPECTED, DEADLINE, stamped=False) is None


def test_a_late_train_tells_nothing_and_nothing_of_it_is_checked(driver: Driver) -> None:
    driver.handle.late = True
    assert track(driver).run(Operation.RUN, [5] * 3, EXPECTED, DEADLINE, stamped=False) is None
    assert {what for what, _ in driver.done} == {"stage"}


@pytest.mark.parametrize("claims", [(), (1.0, 2.0), (1.0, 2.0, 3.0, 4.0), None])
def test_a_stamped_train_has_one_claim_for_each_call(
    driver: Driver, claims: tuple[float, ...] | None
) -> None:
    driver.handle.claims = claims
    with pytest.raises(VerdictError) as refused:
        track(driver).run(Operation.RUN, [5] * 3, EXPECTED, DEADLINE, stamped=True)
    assert refused.value.verdict is Verdict.DISALLOWED


def test_a_train_whose_outputs_are_not_all_described_is_refused(driver: Driver) -> None:
    driver.handle.outputs = driver.handle.outputs[1:]
    with pytest.raises(VerdictError, match="described no output"):
        track(driver).run(Operation.RUN, [5] * 3, EXPECTED, DEADLINE, stamped=False)
    assert ("abort", 0) in driver.done
    assert driver.handle.ended  # before: it could take back what ends its windows


def test_inputs_of_one_train_have_one_structure(driver: Driver) -> None:
    with pytest.raises(VerdictError) as refused:
        track(driver).run(Operation.RUN, [5, 6, 5], EXPECTED, DEADLINE, stamped=False)
    assert refused.value.verdict is Verdict.TASK_ERROR


def short_calls(mode: Mode = Mode.RANKED, **changes: object) -> ShortCalls:
    values: dict[str, object] = {
        "on_gpu": True,
        "launching": None,
        "request": SimpleNamespace(mode=mode),
    }
    values["record_duration"] = lambda _: nullcontext()
    session = cast("EvaluationSession", SimpleNamespace(**(values | changes)))
    return ShortCalls(session, 5, lambda: 5)


@pytest.mark.parametrize(
    ("found", "other", "places"),
    [
        (short_calls(), 5, 32),
        (short_calls(), 6, 0),
        (short_calls(Mode.BENCHMARK), 5, 32),
        (short_calls(Mode.TEST), 5, 0),
        (short_calls(on_gpu=False), 5, 0),
        (short_calls(launching=object()), 5, 0),
    ],
)
def test_places_are_for_timed_kernels_with_a_host_part_on_a_gpu(
    monkeypatch: pytest.MonkeyPatch, found: ShortCalls, other: int, places: int
) -> None:
    monkeypatch.setattr(trains, "place_count", lambda *_: 32)
    plans = Plan(ScalarNode(value=5), 0, 0), Plan(ScalarNode(value=other), 0, 0)
    assert found.reserve(plans, None, 8) == found.places == places


def test_once_a_round_was_timed_by_trains_all_are() -> None:
    mine, plain, trained, eager = (
        short_calls(), make_round(claimed=True), make_round(claimed=True), make_round()
    )  # fmt: skip
    trained.trains = Trains()
    assert not mine.fits(1.0)  # this candidate has no places
    mine.current = cast("Any", object())
    assert mine.fits(19_999.0)
    assert not mine.fits(20_000.0)
    assert mine.fits(20_000.0, 23_999.0)  # its windows may hide some of its time
    assert not mine.fits(20_000.0, 24_000.0)
    assert mine.comparable([plain, eager]) == [plain, eager]
    assert not mine.fits(20_000.0)
    assert mine.comparable([plain, eager, trained]) == [eager, trained]
    assert mine.fits(1e9)
    assert mine.comparable([plain, trained]) == [trained]


@contextmanager
def running(found: list[Any], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def start(self: TrainRunner, candidate: DeviceCandidate, _: int) -> None:
        self.candidate = candidate

    monkeypatch.setattr(TrainRunner, "__init__", start)
    monkeypatch.setattr(TrainRunner, "run", lambda *_, **__: found.pop(0))
    yield


def candidate(place_size: int = 1) -> DeviceCandidate:
    made: DeviceCandidate = object.__new__(DeviceCandidate)
    made.buffers = cast("Any", SimpleNamespace(place_size=place_size))
    process = SimpleNamespace(descendants=(), ran_while_frozen=0)
    made.handle = cast("Any", SimpleNamespace(process=process, verify_frozen=lambda _: None))
    made.slowed_by = lambda: ()  # type: ignore[method-assign]
    made.ahead = True
    return made


def times(*claims: float) -> trains.TrainTimes:
    return trains.TrainTimes((30.0, 31.0), claims)


def measured(
    monkeypatch: pytest.MonkeyPatch,
    standin: list[Any],
    found: list[Any],
    place_size: int = 1,
    *,
    compared: bool = False,
) -> Trains | None:
    mine = short_calls(count_slowed=lambda _: None)
    mine.places = CALLS
    asked: list[int] = []
    if compared:
        mine.compare()
    with running([*standin, *found], monkeypatch):
        made = candidate(place_size)
        made.buffers.check_free_memory = asked.append  # type: ignore[method-assign, assignment]
        mine.calibrate(made, EXPECTED, DEADLINE)
        result = make_round()
        assert mine.run(made, result, lambda: 7.0) is (result.trains is not None)
    assert asked == ([] if mine.current is None else [CALLS])  # before their inputs are made
    if result.trains is not None:
        assert result.claims is result.trains.claims
        assert result.claimed
        assert result.overheads_during == [7.0] * CALIBRATED_AFTER
    else:
        assert (result.claimed, made.ahead) == (False, False)
    return result.trains


def test_windows_count_only_of_trains_without_the_candidates_stamps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = measured(monkeypatch, [times(8.0), times(), times()], [times(6.0), times(), times()])
    assert found is not None
    assert found.calibration_claims == [8.0]
    assert found.claims == [6.0]
    assert found.windows == found.calibration_windows == [30.0, 31.0] * 2
    assert found.bound == pytest.approx(8.0)


def test_a_comparison_counts_the_windows_of_more_trains(monkeypatch: pytest.MonkeyPatch) -> None:
    unstamped = [times()] * UNSTAMPED_COMPARED
    found = measured(monkeypatch, [times(8.0), *unstamped], [times(6.0), *unstamped], compared=True)
    assert found is not None
    assert (found.calibration_claims, found.claims) == ([8.0], [6.0])
    assert found.windows == found.calibration_windows == [30.0, 31.0] * UNSTAMPED_COMPARED


@pytest.mark.parametrize(
    ("least_ns", "compared", "kept"),
    [
        (SHORT_NS, True, True),
        (SHORT_NS - 1, True, False),  # its windows could hide much of such a time
        (SHORT_NS, False, False),
        (-math.inf, True, False),
    ],
)
def test_a_kernel_of_too_many_launches_for_a_train_is_compared_by_single_calls(
    monkeypatch: pytest.MonkeyPatch, least_ns: float, *, compared: bool, kept: bool
) -> None:
    """Its launches were timed too, but not those of its rival."""
    mine, made, result = trained(monkeypatch), candidate(), make_round(claimed=True)
    single, by_train = make_round(claimed=True), make_round(claimed=True)
    by_train.trains = Trains()
    if compared:
        mine.compare()
    assert mine.current is not None
    mine.current.times.least = least_ns
    monkeypatch.setattr(trains.CandidateTrains, "measure", lambda *_: None)

    assert not mine.run(made, result, lambda: 7.0)

    assert (made.ahead, result.claimed) == (kept, kept)
    mine.required = True  # by its rival
    assert mine.fits(1.0) is not kept  # no further train is tried
    assert mine.comparable([single, by_train]) == ([single, by_train] if kept else [by_train])


@pytest.mark.parametrize(
    ("standin", "found", "place_size"),
    [
        ([None], [], 1),
        ([times(8.0), None], [], 1),
        ([times(8.0), times(), times()], [times(6.0), None], 1),
        ([], [], 0),
    ],
)
def test_a_late_train_of_either_leaves_no_times(
    monkeypatch: pytest.MonkeyPatch, standin: list[Any], found: list[Any], place_size: int
) -> None:
    assert measured(monkeypatch, standin, found, place_size) is None


def test_a_candidate_without_a_gpu_has_no_trains() -> None:
    mine = short_calls()
    mine.places = CALLS
    mine.calibrate(cast("Any", object()), EXPECTED, DEADLINE)
    assert mine.current is None
    assert not mine.fits_rehearsal((), make_round())
    assert mine.comparable([Round(on_gpu=False)]) == [Round(on_gpu=False)]


def trained(
    monkeypatch: pytest.MonkeyPatch, counted: Callable[[tuple[str, ...]], None] = print
) -> ShortCalls:
    """Short calls whose current candidate's trains always succeed."""
    mine = short_calls(count_slowed=counted)
    mine.current = trains.CandidateTrains(cast("Any", None), CALLS, EXPECTED, DEADLINE)
    monkeypatch.setattr(trains.CandidateTrains, "measure", lambda self, _: self.times)
    return mine


def test_single_calls_limit_what_trains_may_say(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = trained(monkeypatch)
    result = make_round(own_overheads=100_000.0)
    calls = [
        Exchange(window, CandidateReply(status=Status.DONE, claimed_ns=claim))
        for window, claim in ((112_000.0, 25_000.0), (110_000.0, 6_000.0))
    ]
    assert mine.fits_rehearsal(calls, result)
    assert not mine.fits_rehearsal(calls[:1], result)
    assert mine.current is not None
    assert mine.current.times.least == 112_000.0 - 100_000.0 - HIDDEN_NS
    assert mine.current.times.most == 112_000.0 - 100_000.0 + HIDDEN_NS
    mine.fits_rehearsal(calls, result)
    assert mine.current.times.least == 110_000.0 - 100_000.0 - HIDDEN_NS
    assert mine.current.times.most == 112_000.0 - 100_000.0 + HIDDEN_NS


def test_a_late_rehearsal_does_not_limit_what_trains_may_say(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A submission that wrote `DONE` ahead lifted the limit by 300 us."""
    mine = trained(monkeypatch)
    calls = [
        Exchange(window, CandidateReply(status=Status.DONE, claimed_ns=claim), late=late)
        for window, claim, late in ((9.0, 1.0, True), (5e9, 1.0, True), (110_000.0, 2e4, False))
    ]

    assert not mine.fits_rehearsal(calls, make_round(own_overheads=100_000.0))
    assert mine.current is not None
    assert mine.current.times.least == 10_000.0 - HIDDEN_NS
    assert mine.current.times.most == 10_000.0 + HIDDEN_NS


def test_a_disturbed_window_after_trains_is_repeated_as_for_single_calls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = candidate()
    mine = trained(monkeypatch)
    result = make_round()
    windows = [*[1e9] * DISCARDS_MOST, *[0.1 * MS] * CALIBRATED_AFTER]
    assert mine.run(made, result, lambda: windows.pop(0))
    assert result.discarded == DISCARDS_MOST
    with pytest.raises(DisturbedError):
        mine.run(made, make_round(), lambda: 1e9)


def test_trains_of_a_slowed_gpu_are_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    made = candidate()
    counted: list[tuple[str, ...]] = []
    reasons = [("heat",), ("heat",), ()]
    made.slowed_by = lambda: reasons.pop(0)  # type: ignore[method-assign]
    mine = trained(monkeypatch, counted.append)
    result = make_round()
    assert mine.run(made, result, lambda: 0.1 * MS)
    assert (result.discarded, counted) == (2, [("heat",), ("heat",)])


def test_a_candidate_that_runs_while_it_is_frozen_during_trains_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = candidate()
    mine = trained(monkeypatch)
    assert mine.current is not None

    def measure(self: trains.CandidateTrains, _: object) -> Trains:
        made.handle.process.ran_while_frozen += 1
        return self.times

    monkeypatch.setattr(trains.CandidateTrains, "measure", measure)
    with pytest.raises(VerdictError) as refused:
        mine.run(made, make_round(), lambda: 0.1 * MS)
    assert refused.value.verdict is Verdict.DISALLOWED
