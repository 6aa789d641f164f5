"""Checks on what a candidate did beside answering: changed inputs, processes left behind."""

import torch

from runners.contract.verdict import Verdict
from runners.harness.arena import Arena, lay_out, view
from runners.harness.ruling import Ruling
from runners.harness.values import Node, leaves, tensors


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().reshape(-1).view(torch.uint8)


def _same(left: torch.Tensor, right: torch.Tensor) -> bool:
    if left.dtype != right.dtype or left.shape != right.shape:
        return False
    return torch.equal(_bytes(left), _bytes(right))


def refuse_changed_inputs(arena: Arena, base: int, data: object, output: Node) -> None:
    """Refuse a kernel that wrote into an input, save where that input is what it gave back.

    `data` is the judge's private copy; the arena, which the candidate has mapped at address
    `base`, holds what the kernel left; `output` is the candidate's description of its answer.
    """
    given = [(node.address - base, node.address - base + node.reach) for node in tensors(output)]
    for node, private in zip(tensors(lay_out(data).node), leaves(data), strict=True):
        begin = node.offset or 0
        end = begin + node.reach
        returned = any(low < end and begin < high for low, high in given)
        if not returned and not _same(view(arena.buffer, node), private):
            raise Ruling(
                Verdict.WRONG_ANSWER, "the kernel changed an input, which this task does not allow"
            )


def refuse_new_processes(before: frozenset[int], now: tuple[int, ...]) -> None:
    """Refuse a timed call that left processes behind which were not there after the warm-up."""
    new = frozenset(now) - before
    if new:
        count = len(new)
        what = "a process" if count == 1 else f"{count} processes"
        raise Ruling(Verdict.DISALLOWED, f"the kernel left {what} running after its call")
