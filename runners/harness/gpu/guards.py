"""Guard bands: known bytes around each input and output, which device code must not change.

They are written and checked outside of the window, in memory that the judge owns.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import torch

from runners.contract.verdict import Verdict
from runners.harness.gpu.buffers import Buffers
from runners.harness.protocol.values import TensorNode
from runners.harness.verdicts import VerdictError

GUARD = 0xA5
"""The value of every byte of a band; differs from the poison of outputs."""
BAND = 1 << 20
"""The most bytes of a band on either side of a tensor."""


@dataclass(frozen=True, slots=True)
class GuardedRange:
    """A tensor's bytes in the shared memory, and its name in a launch."""

    name: str
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Band:
    """Bytes after the end of one tensor, before the beginning of another, or both."""

    begin: int
    end: int
    after: GuardedRange | None
    before: GuardedRange | None

    def place(self, offset: int) -> str:
        """The position of one of its bytes relative to the nearer tensor, as a text."""
        behind = None if self.after is None else offset - self.after.end
        ahead = None if self.before is None else self.before.begin - offset
        if behind is not None and (ahead is None or behind < ahead):
            return f"{behind} bytes after the end of {self.after and self.after.name}"
        return f"{ahead} bytes before {self.before and self.before.name}"


def spans(kind: str, nodes: Sequence[TensorNode]) -> Iterator[GuardedRange]:
    """The tensors on the device, with the names that a task's `launch` gives them."""
    for index, node in enumerate(nodes):
        if node.device == "cuda" and node.span:
            begin = node.offset or 0
            yield GuardedRange(f"{kind}{index}", begin, begin + node.reach)


def bands(tensors: Sequence[GuardedRange], size: int) -> tuple[Band, ...]:
    """The bands around tensors in a memory of `size` bytes."""
    ordered = sorted(tensors, key=lambda span: span.begin)
    pairs = zip([None, *ordered], [*ordered, None], strict=True)
    found: list[Band] = []
    for after, before in pairs:
        begin = 0 if after is None else after.end
        end = size if before is None else before.begin
        if end - begin > 2 * BAND:
            found += [Band(begin, begin + BAND, after, None)] if after else []
            found += [Band(end - BAND, end, None, before)] if before else []
        elif end > begin:
            found.append(Band(begin, end, after, before))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Guards:
    """The bands of one call; those around inputs become visible with the input itself."""

    bands: tuple[Band, ...]
    output_at: int

    @classmethod
    def round(
        cls, inputs: Sequence[TensorNode], outputs: Sequence[TensorNode], within: Buffers
    ) -> Self:
        """The bands around these tensors in the shared memory."""
        watched = (*spans("in", inputs), *spans("out", outputs))
        return cls(bands(watched, within.pool_at), within.output_at)

    def lay(self, staging: torch.Tensor, memory: torch.Tensor) -> None:
        """Fill every band: around inputs in `staging`, around outputs in the shared `memory`."""
        for band in self.bands:
            staging[band.begin : min(band.end, self.output_at)].fill_(GUARD)
            memory[max(band.begin, self.output_at) : band.end].fill_(GUARD)

    def refuse_changed(self, memory: torch.Tensor) -> None:
        """Raise VerdictError if a byte of a band has changed."""
        parts = [memory[band.begin : band.end] != GUARD for band in self.bands]
        if not parts:
            return
        count = int(torch.cat(parts).count_nonzero())
        if count == 0:
            return
        band, changed = next(
            (band, part) for band, part in zip(self.bands, parts, strict=True) if bool(part.any())
        )
        first = band.begin + int(changed.nonzero()[0])
        raise VerdictError(
            Verdict.WRONG_ANSWER,
            f"the kernel wrote outside of its buffers: {count} bytes near them changed, the first"
            f" {band.place(first)}",
        )
