"""What of the gate needs no GPU: what is queued, and in which order."""

import mmap
from types import SimpleNamespace

import pytest
import torch

from runners.harness.arena import READY, Words
from runners.harness.cuda import gate as gates
from runners.harness.cuda.gate import DONE, RELEASED, Crossing, Gate

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
        assert (self.name, later.name) == ("opened", "closed")
        return 0.25  # milliseconds


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Everything that is queued, in order."""
    queued: list[object] = []
    monkeypatch.setattr(Event, "queue", queued, raising=False)
    monkeypatch.setattr(Event, "names", ["opened", "closed"], raising=False)
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "Stream", lambda: SimpleNamespace(cuda_stream=BESIDE))
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    zeros = torch.zeros
    monkeypatch.setattr(torch, "zeros", lambda size, dtype, device: zeros(size, dtype=dtype))
    monkeypatch.setattr(gates, "await_word", lambda *args: queued.append(("await", *args)))
    monkeypatch.setattr(gates, "write_word", lambda *args: queued.append(("write", *args)))
    return queued


@pytest.fixture
def gate(queue: list[object]) -> Gate:
    memory = torch.ones(4096, dtype=torch.uint8)
    shared = SimpleNamespace(address=SHARED, bytes=memory)
    made = Gate(shared, Words(mmap.mmap(-1, 4096)))  # type: ignore[arg-type]
    assert memory[: DONE + 4].count_nonzero() == 0  # what was there before tells nothing
    return made


def crossing(gate: Gate, queue: list[object]) -> Crossing:
    return Crossing(gate, 0.1, lambda: queue.append("reveal"), lambda: queue.append("capture"))


def test_nothing_begins_before_all_of_the_window_is_queued(gate: Gate, queue: list[object]) -> None:
    turn = crossing(gate, queue)
    assert queue == []

    turn.release()

    start = gate.start.data_ptr()
    assert queue == [
        ("await", start, 1),
        "opened", "reveal", ("write", SHARED + RELEASED, 1),
        ("await", SHARED + DONE, 1), "capture", "closed",
        ("write", start, 1, BESIDE),
    ]  # fmt: skip


def test_a_turn_is_over_once_its_window_has_closed(gate: Gate, queue: list[object]) -> None:
    turn = crossing(gate, queue)
    assert not turn.over()

    turn.release()

    assert turn.over()
    assert turn.window_ns() == 250_000.0


def test_who_is_ready_for_an_earlier_turn_is_not_ready_for_this_one(
    gate: Gate, queue: list[object]
) -> None:
    first = crossing(gate, queue)
    gate.host.write(READY, 1)
    assert first.ready()

    second = crossing(gate, queue)
    assert not second.ready()
    gate.host.write(READY, 2)
    assert second.ready()


@pytest.mark.parametrize("released", [True, False])
def test_an_aborted_turn_waits_for_nobody_any_more(
    *, gate: Gate, queue: list[object], released: bool
) -> None:
    turn = crossing(gate, queue)
    if released:
        turn.release()
    queue.clear()

    gate.abort()

    assert queue == [
        ("write", gate.start.data_ptr(), 1, BESIDE), ("write", SHARED + DONE, 1, BESIDE),
    ]  # fmt: skip
