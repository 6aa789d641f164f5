"""Which copies are timed needs no GPU, nor what is concluded from them."""

from types import SimpleNamespace
from typing import cast

import pytest
import torch

from runners.harness.gpu.buffers import Buffers
from runners.harness.judge import capture_times
from runners.harness.judge.capture_times import COUNTS, REPEATS, CaptureTimes

OUTPUT_AT, SIZE = 64, 1 << 20
LINE = CaptureTimes((100, 200, 400), ((5.0, 7.0, 8.0), (6.0, 9.0), (8.0, 13.0)))
"""Of one, two and four copies; of the last size, only one fits."""


@pytest.mark.parametrize(
    ("size", "time_ns"),
    [(100, 5.0), (150, 6.0), (200, 7.0), (300, 7.5), (400, 8.0), (0, 3.0), (600, 9.0)],
)
def test_the_time_of_a_copy_is_on_the_line_through_its_neighbours(
    size: int, time_ns: float
) -> None:
    assert LINE.total([size]) == time_ns


@pytest.mark.parametrize(
    ("sizes", "time_ns"),
    [
        ([100, 100], 6.0),
        ([100, 200], 7.5),
        ([100] * 3, 7.0),
        ([50, 100, 150], 7.0),
        ([200] * 4, 13.0),
        ([100] * 6, 10.0),  # beyond what was timed
        ([], 0.0),
    ],
)
def test_several_copies_take_as_long_as_a_row_of_their_mean_size(
    sizes: list[int], time_ns: float
) -> None:
    assert LINE.total(sizes) == time_ns


def test_where_only_single_copies_fit_their_times_add_up() -> None:
    assert CaptureTimes((100, 200), ((5.0, 7.0),)).total([150, 150]) == 12.0


class Gpu:
    """Plays a GPU whose copies take as many nanoseconds as they have bytes."""

    def __init__(self) -> None:
        self.memory = torch.zeros(OUTPUT_AT + 2 * SIZE, dtype=torch.uint8)
        self.captured = torch.zeros(SIZE, dtype=torch.uint8)
        self.steps: list[tuple[str, int, int]] = []
        self.shared = SimpleNamespace(
            memory=SimpleNamespace(bytes=self.memory),
            output_at=OUTPUT_AT,
            flush_cache=lambda: self.note("flush"),
        )

    def note(self, step: str) -> None:
        written, copied = self.memory.count_nonzero(), self.captured.count_nonzero()
        self.steps.append((step, int(written), int(copied)))

    def record(self) -> None:
        self.note("record")

    def elapsed_time(self, _: object) -> float:
        copied = int(self.captured.count_nonzero())
        self.memory.zero_()
        self.captured.zero_()
        return copied * 1e-6

    def await_word(self, address: int, turn: int) -> None:
        self.steps.append(("await", address, turn))

    def pin_memory(self) -> "Gpu":
        """Become the pinned word for which the stream waits."""
        return self

    def data_ptr(self) -> int:
        return 1

    def __setitem__(self, _: int, turn: int) -> None:
        self.steps.append(("start", 1, turn))


def test_rows_of_copies_of_many_sizes_are_timed_with_the_output_in_the_cache(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gpu = Gpu()
    monkeypatch.setattr(capture_times, "timed_event", lambda: gpu)
    monkeypatch.setattr(capture_times, "await_word", gpu.await_word)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: gpu.note("synchronize"))
    monkeypatch.setattr(torch, "zeros", lambda *_, dtype: dtype and gpu)

    times = CaptureTimes.measure(cast("Buffers", gpu.shared), gpu.captured)

    assert times.sizes[-3:] == (SIZE // 2, 3 * SIZE // 4, SIZE)
    assert times.sizes[0] == 1536  # so that small outputs lie between two sizes too
    assert times.times_ns[0] == pytest.approx(times.sizes)
    assert [len(row) for row in times.times_ns] == [20, 17, 15, 13, 11, 9, 7, 4]
    for count, row in zip(COUNTS, times.times_ns, strict=True):
        assert row == pytest.approx([count * size for size in times.sizes[: len(row)]])
    assert len(gpu.steps) == 6 * REPEATS * sum(map(len, times.times_ns))
    assert gpu.steps[:6] == [
        ("await", 1, 1),
        ("flush", 0, 0),
        ("record", 8192, 0),  # with the page that is free behind each
        ("record", 8192, 1536),
        ("start", 1, 1),
        ("synchronize", 8192, 1536),
    ]
