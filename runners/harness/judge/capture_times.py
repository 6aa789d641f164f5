"""How long the judge's copy of an output on a GPU takes, by the output's size.

A window ends with that copy. If the outputs of a case differ in size, its time differs from that in
the windows of calibration, whose output always has the same size.
"""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median
from typing import Self

import torch

from runners.harness.gpu.buffers import Buffers
from runners.harness.gpu.memory import timed_event

HALVINGS = 10
"""Copies are timed for sizes down to 2 ** -`HALVINGS` of the memory for outputs, two for each."""
REPEATS = 5
"""Copies of each size; the median counts."""


@dataclass(frozen=True, slots=True)
class CaptureTimes:
    """The times of copies of some sizes, measured before any submitted code runs."""

    sizes: tuple[int, ...]
    """In bytes, in ascending order."""
    times_ns: tuple[float, ...]

    @classmethod
    def measure(cls, buffers: Buffers, captured: torch.Tensor) -> Self:
        """Time copies from the memory for outputs to `captured`, which is as large."""
        source = buffers.memory.bytes[buffers.output_at :][: captured.numel()]

        def timed(size: int) -> float:
            begin, end = timed_event(), timed_event()
            buffers.flush_cache()
            source[:size].fill_(1)  # as the calibration kernel does
            begin.record()
            captured[:size].copy_(source[:size])
            end.record()
            torch.cuda.synchronize()
            return float(begin.elapsed_time(end)) * 1e6

        whole = captured.numel()
        sizes = {whole * part // 4 >> halvings for part in (3, 4) for halvings in range(HALVINGS)}
        ordered = tuple(sorted(sizes - {0}))
        return cls(ordered, tuple(median(timed(size) for _ in range(REPEATS)) for size in ordered))

    def total(self, sizes: Iterable[int]) -> float:
        """Return the time in ns of one copy of each size."""
        return sum(map(self._of, sizes))

    def _of(self, size: int) -> float:
        """Return the time of a copy, on the line through the two nearest sizes that were timed."""
        place = min(max(1, bisect_left(self.sizes, size)), len(self.sizes) - 1)
        low, high = self.sizes[place - 1], self.sizes[place]
        low_ns, high_ns = self.times_ns[place - 1], self.times_ns[place]
        return low_ns + (high_ns - low_ns) * (size - low) / (high - low)
