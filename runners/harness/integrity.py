"""Checks on what a candidate did beside answering: changed inputs, processes left behind."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from runners.contract.verdict import Verdict
from runners.harness.arena import Arena, lay_out, view
from runners.harness.ruling import Ruling
from runners.harness.values import Node, TensorNode, leaves, tensors


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    flat = tensor.contiguous().reshape(-1)
    # A single element keeps whatever stride it had, which bytes cannot have.
    return flat.as_strided(flat.shape, (1,)).view(torch.uint8)


def _same(left: torch.Tensor, right: torch.Tensor) -> bool:
    if left.dtype != right.dtype or left.shape != right.shape:
        return False
    return torch.equal(_bytes(left), _bytes(right))


@dataclass(frozen=True, slots=True)
class Changes:
    """Input tensors after a call beside the judge's private copies, with where they lie."""

    places: Sequence[TensorNode]
    left: Sequence[torch.Tensor]
    private: Sequence[torch.Tensor]


def refuse_changed(changes: Changes, base: int, output: Node) -> None:
    """Refuse a kernel that wrote into an input, save where that input is what it gave back.

    The candidate has the inputs mapped at address `base`; `output` describes its answer.
    """
    given = [(node.address - base, node.address - base + node.reach) for node in tensors(output)]
    rows = zip(changes.places, changes.left, changes.private, strict=True)
    for place, left, private in rows:
        begin = place.offset or 0
        end = begin + place.reach
        returned = any(low < end and begin < high for low, high in given)
        if not returned and not _same(left, private):
            raise Ruling(
                Verdict.WRONG_ANSWER, "the kernel changed an input, which this task does not allow"
            )


def changes_in(arena: Arena, data: object) -> Changes:
    """The host tensors of an arena beside the private `data` that was written into it."""
    rows = list(zip(tensors(lay_out(data).node), leaves(data), strict=True))
    host = [(node, private) for node, private in rows if node.device == "cpu"]
    return Changes(
        places=[node for node, _ in host],
        left=[view(arena.buffer, node) for node, _ in host],
        private=[private for _, private in host],
    )


def refuse_new_processes(before: frozenset[int], now: tuple[int, ...]) -> None:
    """Refuse a timed call that left processes behind which were not there after the warm-up."""
    new = frozenset(now) - before
    if new:
        count = len(new)
        what = "a process" if count == 1 else f"{count} processes"
        raise Ruling(Verdict.DISALLOWED, f"the kernel left {what} running after its call")
