"""Which copies are timed needs no GPU, nor what is concluded from them."""

from types import SimpleNamespace
from typing import cast

import pytest
import torch

from runners.harness.gpu.buffers import Buffers
from runners.harness.judge.capture_times import REPEATS, CaptureTimes

OUTPUT_AT, SIZE = 64, 4096
LINE = CaptureTimes((100, 200, 400), (5.0, 7.0, 8.0))


@pytest.mark.parametrize(
    ("size", "time_ns"),
    [(100, 5.0), (150, 6.0), (200, 7.0), (300, 7.5), (400, 8.0), (0, 3.0), (600, 9.0)],
)
def test_the_time_of_a_copy_is_on_the_line_through_its_neighbours(
    size: int, time_ns: float
) -> None:
    assert LINE.total([size]) == time_ns


def test_the_times_of_several_copies_add_up() -> None:
    assert LINE.total([150, 300]) == 13.5
    assert LINE.total([]) == 0.0


def test_copies_of_many_sizes_are_timed_with_the_output_in_the_cache(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    memory = torch.zeros(OUTPUT_AT + 2 * SIZE, dtype=torch.uint8)
    captured = torch.zeros(SIZE, dtype=torch.uint8)
    steps: list[tuple[str, int, int]] = []

    def noting(name: str) -> None:
        steps.append((name, int(memory.count_nonzero()), int(captured.count_nonzero())))

    class Event:
        def __init__(self, *, enable_timing: bool) -> None:
            assert enable_timing

        def record(self) -> None:
            noting("record")

        def elapsed_time(self, _: object) -> float:
            copied = int(captured.count_nonzero())
            memory.zero_()
            captured.zero_()
            return copied * 1e-6

    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: noting("synchronize"))
    shared = SimpleNamespace(
        memory=SimpleNamespace(bytes=memory),
        output_at=OUTPUT_AT,
        flush_cache=lambda: noting("flush"),
    )

    times = CaptureTimes.measure(cast("Buffers", shared), captured)

    assert times.sizes[-3:] == (SIZE // 2, 3 * SIZE // 4, SIZE)
    assert times.sizes[0] == 6  # so that small outputs lie between two sizes too
    assert times.times_ns == pytest.approx(times.sizes)
    assert len(steps) == 4 * REPEATS * len(times.sizes)
    assert steps[:4] == [
        ("flush", 0, 0),
        ("record", 6, 0),
        ("record", 6, 6),
        ("synchronize", 6, 6),
    ]
