"""What is looked for on a GPU between two evaluations, with NVML and CUDA of the test's own."""

from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
import torch

from runners.contract.runner import Health
from runners.harness.gpu import health
from runners.harness.gpu.health import Card, arithmetic_is_right, examine, make_context, read_cards

CARD = Card(handle="GPU-ab", used=600 << 20, errors=1)


class Nvml:
    """NVML's answers, each asked for with the number of the look."""

    def __init__(self) -> None:
        self.handles: list[str] = []
        self.looks = 0
        self.used_by: Callable[[int], int] = lambda _: CARD.used
        self.others: Callable[[int], int] = lambda _: 0
        self.errors = CARD.errors

    def __call__(self, handle: str) -> "Nvml":
        self.handles.append(handle)
        return self

    def processes(self) -> int:
        self.looks += 1
        return self.others(self.looks)

    def used(self) -> int:
        return self.used_by(self.looks)

    def memory_errors(self) -> int:
        return self.errors


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> Nvml:
    made = Nvml()
    monkeypatch.setattr(health, "Monitor", made)
    monkeypatch.setattr(health, "SETTLE_S", 0.1)
    return made


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A GPU that works, and holds nothing."""
    found = SimpleNamespace(right=True, dirty=0, contexts=0)

    def make_context() -> None:
        found.contexts += 1

    monkeypatch.setattr(health, "make_context", make_context)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "device", lambda _: nullcontext())
    monkeypatch.setattr(health, "arithmetic_is_right", lambda _: found.right)
    monkeypatch.setattr(health, "scrub", lambda: found.dirty)
    return found


def test_a_gpu_that_was_left_as_it_was_found_is_fit(nvml: Nvml, cuda: SimpleNamespace) -> None:
    assert examine([CARD]) == Health()
    assert (nvml.handles, cuda.contexts) == (["GPU-ab"], 1)


@pytest.mark.usefixtures("cuda")
def test_what_is_just_ending_is_waited_for(nvml: Nvml) -> None:
    nvml.others = lambda look: int(look < 3)
    nvml.used_by = lambda look: CARD.used + (10 << 30 if look < 4 else health.MAX_LEFT_BYTES)

    assert examine([CARD]) == Health()
    assert nvml.looks == 4


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"others": lambda _: 1}, "GPU GPU-ab: 1 other process computing on it"),
        ({"others": lambda _: 2}, "GPU GPU-ab: 2 other processes computing on it"),
        (
            {"used_by": lambda _: CARD.used + (257 << 20)},
            "GPU GPU-ab: 257 MiB of its memory were not freed",
        ),
        ({"errors": 2}, "GPU GPU-ab: its memory has new uncorrectable errors"),
    ],
)
def test_a_gpu_that_others_use_or_that_lost_something_is_not_fit(
    nvml: Nvml, cuda: SimpleNamespace, changes: dict[str, object], why: str
) -> None:
    for name, value in changes.items():
        setattr(nvml, name, value)

    assert examine([CARD]) == Health(unfit=why)
    assert cuda.contexts == 0


@pytest.mark.usefixtures("nvml")
def test_a_gpu_that_miscounts_is_not_fit(cuda: SimpleNamespace) -> None:
    cuda.right = False

    assert "a test sum is wrong" in examine([CARD]).unfit


@pytest.mark.usefixtures("nvml", "cuda")
@pytest.mark.parametrize("error", [RuntimeError("an illegal address"), AssertionError("no CUDA")])
def test_a_gpu_on_which_nothing_works_is_not_fit(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(_: str) -> bool:
        raise error

    monkeypatch.setattr(health, "arithmetic_is_right", fail)

    assert examine([CARD]).unfit == f"CUDA does not work: {error}"


@pytest.mark.usefixtures("nvml", "cuda")
def test_without_a_gpu_nothing_is_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)

    assert examine([]).unfit == "there is no GPU"


@pytest.mark.usefixtures("nvml")
def test_what_was_wiped_is_told(cuda: SimpleNamespace) -> None:
    cuda.dirty = 3 << 30

    assert examine([CARD]) == Health(scrubbed=3 << 30)


def test_the_sum_is_right_where_arithmetic_is(monkeypatch: pytest.MonkeyPatch) -> None:
    assert arithmetic_is_right("cpu")
    monkeypatch.setattr(health, "MODULUS", 65_519)
    assert not arithmetic_is_right("cpu")


class Memory:
    """A GPU's memory of which the first bytes that are asked for hold what they hold."""

    def __init__(self, *, free: int, holds: int) -> None:
        self.free = free
        self.holds = holds
        self.zeroed = 0

    def empty(self, size: int, **_: object) -> torch.Tensor:
        assert size % 8 == 0
        return torch.full((64,), self.holds, dtype=torch.uint8)

    def zeros(self, size: int, **_: object) -> torch.Tensor:
        self.free -= size
        self.zeroed += size
        return torch.ones(1)


@pytest.mark.parametrize(("holds", "wiped"), [(0, 0), (7, 3 * health.BLOCK_BYTES)])
def test_memory_that_holds_something_is_wiped(
    monkeypatch: pytest.MonkeyPatch, holds: int, wiped: int
) -> None:
    memory = Memory(free=4 * health.BLOCK_BYTES + 5, holds=holds)
    monkeypatch.setattr(torch, "empty", memory.empty)
    monkeypatch.setattr(torch, "zeros", memory.zeros)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (memory.free, 0))
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)

    assert health.scrub() == memory.zeroed == wiped


def test_the_first_look_is_taken_by_another_process(
    monkeypatch: pytest.MonkeyPatch, nvml: Nvml
) -> None:
    monkeypatch.setattr(health, "visible_gpus", lambda: ("GPU-ab", "1"))

    assert read_cards() == (CARD, Card("1", CARD.used, CARD.errors))
    assert nvml.handles == []


def test_a_first_look_that_fails_has_seen_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> tuple[str, ...]:
        raise OSError("no devices")

    monkeypatch.setattr(health, "visible_gpus", fail)

    assert read_cards() == ()


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is here")
def test_without_a_gpu_there_is_no_context_and_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(health, "first_gpu", lambda: asked.append(1))

    make_context()

    assert asked == []


def test_processes_that_are_ending_are_waited_for_but_not_for_ever(
    nvml: Nvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "first_gpu", lambda: nvml)
    nvml.others = lambda look: 3 if look < 3 else 2
    assert health.await_processes(2)
    assert nvml.looks == 3
    assert not health.await_processes(1)
