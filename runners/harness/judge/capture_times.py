"""How long the judge's copies of an output on a GPU take, by the tensors' number and size.

A window ends with these copies. If the outputs of a case differ in size or number, their time
differs from that in the windows of calibration, whose output is always the same.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Self

import torch

from runners.harness.gpu.buffers import Buffers
from runners.harness.gpu.memory import await_word, timed_event
from runners.harness.protocol.arena import pages

HALVINGS = 10
"""Copies are timed for sizes down to 2 ** -`HALVINGS` of the memory for outputs, two for each."""
COUNTS = (1, 2, 4, 8, 16, 32, 64, 128)
"""How many copies are timed in a row. Each but the first takes about half as long as one alone."""
REPEATS = 5
"""How often each row of copies is timed; the median counts."""


@dataclass(frozen=True, slots=True)
class CaptureTimes:
    """The times of copies of some sizes, measured before any submitted code runs."""

    sizes: tuple[int, ...]
    """In bytes, in ascending order."""
    times_ns: tuple[tuple[float, ...], ...]
    """For each of `COUNTS` the times of so many copies of each size that fits so often."""

    @classmethod
    def measure(cls, buffers: Buffers, captured: torch.Tensor) -> Self:
        """Time copies from the memory for outputs to `captured`, which is as large."""
        source = buffers.memory.bytes[buffers.output_at :][: captured.numel()]
        word, turn = torch.zeros(1, dtype=torch.int32).pin_memory(), 0

        def timed(count: int, size: int) -> float:
            nonlocal turn
            begin, end, turn = timed_event(), timed_event(), turn + 1
            await_word(word.data_ptr(), turn)  # all copies are queued before the first one starts
            buffers.flush_cache()
            source[: count * pages(size)].fill_(1)  # as the calibration kernel does
            begin.record()
            for start in range(0, count * pages(size), pages(size)):
                captured[start : start + size].copy_(source[start : start + size])
            end.record()
            word[0] = turn
            torch.cuda.synchronize()
            return float(begin.elapsed_time(end)) * 1e6

        whole = captured.numel()
        sizes = {whole * part // 4 >> halvings for part in (3, 4) for halvings in range(HALVINGS)}
        ordered = tuple(sorted(sizes - {0}))
        rows = (
            tuple(
                median(timed(count, size) for _ in range(REPEATS))
                for size in ordered
                if count == 1 or count * pages(size) <= whole
            )
            for count in COUNTS
        )
        return cls(ordered, tuple(row for row in rows if len(row) > 1))

    def total(self, sizes: Sequence[int]) -> float:
        """Return the time in ns of one copy of each size, one after the other.

        It is that of as many copies of the mean size, on the line through the two nearest counts.
        """
        if not sizes:
            return 0.0
        place = min(max(1, bisect_left(COUNTS, len(sizes))), len(self.times_ns) - 1)
        if place == 0:
            return len(sizes) * self._of(self.times_ns[0], fmean(sizes))
        low, high = COUNTS[place - 1], COUNTS[place]
        low_ns, high_ns = (
            self._of(row, fmean(sizes)) for row in self.times_ns[place - 1 : place + 1]
        )
        return low_ns + (high_ns - low_ns) * (len(sizes) - low) / (high - low)

    def _of(self, row: tuple[float, ...], size: float) -> float:
        """Return the time of copies of a size, on the line through the two nearest sizes."""
        place = min(max(1, bisect_left(self.sizes, size)), len(row) - 1)
        low, high = self.sizes[place - 1], self.sizes[place]
        return row[place - 1] + (row[place] - row[place - 1]) * (size - low) / (high - low)
