"""Tests of the rates that need no GPU: what is counted, which try counts, what is restored."""

from collections.abc import Iterator

import pytest
import torch

from tests.gpu.rates import TRIES, WARM_UPS, measured_rates

SIZE, COPIED = 32, 1 << 20
OPERATIONS = 2.0 * SIZE**3
MILLISECONDS = (2.0, 4.0, 5.0, 8.0, 10.0)
"""The best time of a copy, then of a product in FP32, FP16, BF16 and FP8."""


class Event:
    """Replaces a CUDA event; the fourth of several tries is the best."""

    elapsed: Iterator[float]
    recorded = 0
    waited_for = 0

    def __init__(self, *, enable_timing: bool) -> None:
        assert enable_timing

    def record(self) -> None:
        Event.recorded += 1

    def elapsed_time(self, end: "Event") -> float:
        assert Event.waited_for == Event.recorded, "an event is asked that was not waited for"
        return next(Event.elapsed)

    @classmethod
    def wait(cls) -> None:
        cls.waited_for = cls.recorded


@pytest.fixture(autouse=True)
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A GPU of compute capability 9.0."""
    tries = (best * (1 if number == 3 else 1.5) for best in MILLISECONDS for number in range(TRIES))
    monkeypatch.setattr(Event, "elapsed", tries, raising=False)
    monkeypatch.setattr(Event, "recorded", 0)
    monkeypatch.setattr(Event, "waited_for", 0)
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "synchronize", Event.wait)
    be_able_to(monkeypatch, 9, 0)
    before = torch.get_float32_matmul_precision()
    yield
    torch.set_float32_matmul_precision(before)


def be_able_to(monkeypatch: pytest.MonkeyPatch, *capability: int) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)


def test_bytes_count_twice_and_the_best_try_counts() -> None:
    found = measured_rates(SIZE, COPIED, "cpu")

    assert found.bytes_per_s == pytest.approx(2 * COPIED / 2e-3)
    assert found.fp32_per_s == pytest.approx(OPERATIONS / 4e-3)
    assert found.fp16_per_s == pytest.approx(OPERATIONS / 5e-3)
    assert found.bf16_per_s == pytest.approx(OPERATIONS / 8e-3)
    assert found.fp8_per_s == pytest.approx(OPERATIONS / 10e-3)


@pytest.mark.parametrize(
    ("capability", "known"),
    [((7, 5), ()), ((8, 0), ("bf16",)), ((8, 6), ("bf16",)), ((8, 9), ("bf16", "fp8"))],
    ids=["T4", "A100", "A10", "L4"],
)
def test_what_the_tensor_cores_do_not_know_is_not_measured(
    monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int], known: tuple[str, ...]
) -> None:
    be_able_to(monkeypatch, *capability)

    found = measured_rates(SIZE, COPIED, "cpu")

    measured = {"bf16": found.bf16_per_s, "fp8": found.fp8_per_s}
    assert tuple(name for name, rate in measured.items() if rate is not None) == known


def test_every_try_is_a_product_of_the_whole_size_in_its_type(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[tuple[torch.dtype, torch.Size, str]] = []
    mm, scaled_mm = torch.mm, torch._scaled_mm

    def noted(a: torch.Tensor, b: torch.Tensor, *, out: torch.Tensor) -> torch.Tensor:
        calls.append((a.dtype, b.shape, torch.get_float32_matmul_precision()))
        return mm(a, b, out=out)

    def scaled(a: torch.Tensor, b: torch.Tensor, **options: object) -> object:
        calls.append((a.dtype, b.shape, torch.get_float32_matmul_precision()))
        return scaled_mm(a, b, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(torch, "mm", noted)
    monkeypatch.setattr(torch, "_scaled_mm", scaled)
    torch.set_float32_matmul_precision("high")

    measured_rates(SIZE, COPIED, "cpu")

    types = (torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn)
    each = WARM_UPS + TRIES
    shape = torch.Size((SIZE, SIZE))
    assert calls == [(dtype, shape, "highest") for dtype in types for _ in range(each)]
    assert torch.get_float32_matmul_precision() == "high"


def test_a_failure_leaves_the_precision_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise torch.OutOfMemoryError("no room")

    monkeypatch.setattr(torch, "mm", fail)
    torch.set_float32_matmul_precision("medium")

    with pytest.raises(torch.OutOfMemoryError):
        measured_rates(SIZE, COPIED, "cpu")

    assert torch.get_float32_matmul_precision() == "medium"
