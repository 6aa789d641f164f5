"""What of the gate needs no GPU: what is queued, and in which order."""

from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
import torch

from runners.harness.gpu import handover
from runners.harness.gpu.handover import (
    DONE,
    FROZEN_S,
    RELEASED,
    Handover,
    HandoverCall,
    PlaceActions,
    TrainActions,
    TrainCall,
    TrainWindows,
    WindowActions,
)
from runners.harness.protocol.channel import CandidateReply, Status

SHARED = 1 << 40
BESIDE = 77


class Event:
    """A time stamp of a GPU that is not there."""

    queue: list[object]
    names: list[str]

    def __init__(self, *, enable_timing: bool) -> None:
        assert enable_timing
        self.name = self.names.pop(0)

    def record(self) -> None:
        self.queue.append(self.name)

    def query(self) -> bool:
        return self.name in self.queue

    def elapsed_time(self, later: "Event") -> float:
        return {("opened", "closed"): 0.25, ("captured", "closed"): 0.05}[self.name, later.name]


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Everything that is queued, in order."""
    queued: list[object] = []
    monkeypatch.setattr(Event, "queue", queued, raising=False)
    monkeypatch.setattr(Event, "names", ["opened", "shown", "captured", "closed"], raising=False)
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "Stream", lambda: SimpleNamespace(cuda_stream=BESIDE))
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    zeros = torch.zeros
    monkeypatch.setattr(torch, "zeros", lambda size, dtype, device: zeros(size, dtype=dtype))
    monkeypatch.setattr(handover, "await_word", lambda *args: queued.append(("await", *args)))
    monkeypatch.setattr(handover, "write_word", lambda *args: queued.append(("write", *args)))
    return queued


@pytest.fixture
def gate(queue: list[object]) -> Handover:
    memory = torch.ones(4096, dtype=torch.uint8)
    shared = SimpleNamespace(address=SHARED, bytes=memory)
    made = Handover(shared)  # type: ignore[arg-type]
    assert memory[: DONE + 4].count_nonzero() == 0  # what was there before tells nothing
    return made


def crossing(gate: Handover, queue: list[object], *, told: bool = False) -> HandoverCall:
    def noting(what: str) -> Callable[[], None]:
        return lambda: queue.append(what)

    def queued(first: CandidateReply | None) -> None:
        queue.append(("queued", first))

    def take(last: CandidateReply) -> None:
        queue.append(("taken", last))

    steps = WindowActions(
        stage=noting("stage"),
        queued=queued,
        flush_cache=noting("flush"),
        reveal=noting("reveal"),
        complete=noting("complete"),
        capture=noting("capture"),
        take=take if told else None,
    )
    return HandoverCall(gate, 0.1, steps)


def test_nothing_begins_before_all_of_the_window_is_queued(
    gate: Handover, queue: list[object]
) -> None:
    turn = crossing(gate, queue)
    assert queue == []

    turn.release()

    assert queue == [
        ("await", gate.start, 1), "flush",
        "opened", "reveal", "complete", "shown", ("write", SHARED + RELEASED, 1),
        ("await", SHARED + DONE, 1), "capture", "closed",
        ("write", gate.start, 1, BESIDE),
    ]  # fmt: skip


def test_a_window_closes_only_when_what_is_told_of_the_answer_was_taken(
    gate: Handover, queue: list[object]
) -> None:
    turn = crossing(gate, queue, told=True)
    turn.release()
    assert queue == [
        ("await", gate.start, 1), "flush",
        "opened", "reveal", "complete", "shown", ("write", SHARED + RELEASED, 1),
        ("await", SHARED + DONE, 1), "capture", "captured", ("await", gate.taken, 1), "closed",
        ("write", gate.start, 1, BESIDE),
    ]  # fmt: skip
    queue.clear()
    last = CandidateReply(status=Status.DONE)

    turn.take(last)

    assert queue == [("taken", last), ("write", gate.taken, 1, BESIDE)]
    assert turn.host_part_ns() == 50_000.0


def test_where_nothing_is_told_of_the_answer_a_window_waits_for_the_gpu_alone(
    gate: Handover, queue: list[object]
) -> None:
    turn = crossing(gate, queue)

    assert (turn.has_host_part, turn.host_part_ns()) == (False, 0.0)


def test_no_word_of_the_judges_own_lies_with_another_or_where_a_candidate_can_write(
    gate: Handover,
) -> None:
    own = range(
        gate.private_words.data_ptr(),
        gate.private_words.data_ptr() + gate.private_words.numel() - 3,
    )

    assert gate.start in own
    assert gate.taken in own
    assert abs(gate.start - gate.taken) >= DONE  # cache lines of their own
    assert gate.private_words.count_nonzero() == 0


@pytest.mark.parametrize("first", [CandidateReply(status=Status.DONE), None])
def test_where_the_output_will_lie_is_noted_without_a_window_being_opened(
    gate: Handover, queue: list[object], first: CandidateReply | None
) -> None:
    crossing(gate, queue).queued(first)

    assert queue == [("queued", first)]


def test_a_turn_is_over_once_its_window_has_closed(gate: Handover, queue: list[object]) -> None:
    turn = crossing(gate, queue)
    assert not turn.over()

    turn.release()

    assert turn.over()
    assert turn.window_ns() == 250_000.0


def test_the_input_is_shown_when_all_work_before_the_released_word_has_ended(
    gate: Handover, queue: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Calibration subtracts all that comes before, so a scalar must not be known in that time."""
    turn = crossing(gate, queue)
    turn.release()
    ended = queue[: queue.index(("write", SHARED + RELEASED, 1)) - 1]
    monkeypatch.setattr(Event, "queue", ended)  # all that the GPU has done so far

    assert ended[-1] == "complete"
    assert not turn.is_shown()
    ended.append("shown")
    assert turn.is_shown()


def test_every_turn_has_a_number_of_its_own(gate: Handover, queue: list[object]) -> None:
    for number in (1, 2):
        queue.clear()
        crossing(gate, queue).release()
        assert ("write", SHARED + RELEASED, number) in queue


@pytest.mark.parametrize("released", [True, False])
def test_an_aborted_turn_waits_for_nobody_any_more(
    *, gate: Handover, queue: list[object], released: bool
) -> None:
    turn = crossing(gate, queue, told=True)
    if released:
        turn.release()
    queue.clear()

    gate.abort()

    assert queue == [
        ("write", gate.start, 1, BESIDE), ("write", gate.taken, 1, BESIDE),
        ("write", SHARED + RELEASED, 1, BESIDE), ("write", SHARED + DONE, 1, BESIDE),
    ]  # fmt: skip


LINE = 78


@pytest.fixture
def windows(gate: Handover, queue: list[object], monkeypatch: pytest.MonkeyPatch) -> TrainWindows:
    """The windows of a train of two calls, whose copy beside is only noted."""
    names = ["opened 1", "opened 2", "closed 1", "closed 2"]
    monkeypatch.setattr(Event, "names", names)
    monkeypatch.setattr(torch.cuda, "Stream", lambda: SimpleNamespace(cuda_stream=LINE))
    monkeypatch.setattr(torch.cuda, "stream", lambda _: nullcontext())
    monkeypatch.setattr(torch, "zeros", lambda *_, dtype: Pinned())
    monkeypatch.setattr(torch, "empty", lambda *_, **__: Pinned(queue))
    made = TrainWindows(gate, 2)
    queue.clear()
    return made


class Pinned:
    """Memory of the host that a GPU can reach, or of the GPU; it notes what is copied."""

    def __init__(self, queue: list[object] | None = None) -> None:
        self.queue = queue
        self.value = 0

    def pin_memory(self) -> "Pinned":
        return self

    def data_ptr(self) -> int:
        return 5

    def copy_(self, _: object, *, non_blocking: bool) -> None:
        assert non_blocking
        assert self.queue is not None
        self.queue.append("copy beside")

    def __setitem__(self, _: int, value: int) -> None:
        self.value = value


def train(windows: TrainWindows, queue: list[object]) -> TrainCall:
    def place(number: int) -> PlaceActions:
        return PlaceActions(
            reveal=lambda: queue.append(f"reveal {number}"),
            complete=lambda: queue.append(f"complete {number}"),
            capture=lambda: queue.append(f"capture {number}"),
        )

    actions = TrainActions(
        (place(1), place(2)),
        lambda: queue.append("stage"),
        lambda _: queue.append("queued"),
        lambda: queue.append("flush"),
    )
    return TrainCall(windows, 0.1, actions)


def test_each_call_of_a_train_gets_its_input_after_the_output_before_it_was_captured(
    windows: TrainWindows, gate: Handover, queue: list[object]
) -> None:
    call = train(windows, queue)
    assert gate.turn == 2
    call.queued(CandidateReply(status=Status.DONE))

    call.release()

    expected: list[object] = ["queued", ("await", 5, 2)]
    for turn in (1, 2):
        expected += [
            f"reveal {turn}", "flush", f"complete {turn}", f"opened {turn}",
            ("write", SHARED + RELEASED, turn),
            ("write", gate.left, turn), ("await", gate.left, turn, LINE), "copy beside",
            ("write", gate.back, turn, LINE), ("await", gate.back, turn),
            f"closed {turn}", f"capture {turn}",
        ]  # fmt: skip
    assert queue == expected
    assert windows.start.value == 2  # type: ignore[attr-defined]
    assert not call.late
    assert (call.frozen_s, call.has_host_part, call.host_part_ns()) == (2 * FROZEN_S, False, 0.0)


def test_a_train_that_was_not_queued_in_time_runs_without_windows(
    windows: TrainWindows, queue: list[object]
) -> None:
    call = train(windows, queue)
    call.queued(None)

    call.release()

    assert call.late
    assert ("write", SHARED + RELEASED, 2, BESIDE) in queue
    assert "lay 1" not in queue
    assert call.window_ns() == 0.0


def test_the_first_window_of_a_train_does_not_count(
    windows: TrainWindows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Event, "elapsed_time", lambda self, later: int(later.name[-1]))
    assert windows.windows_ns() == [2e6]
