"""Poisons memory on a GPU in which a call must write its output, so that no right one is there."""

import secrets
from collections.abc import Sequence

import torch

from runners.harness.protocol import values

POISONS = 0xFF, 0x7B
"""The values of the bytes of every second element of a floating type before a call: NaN, and a
very large number. An output that was not written is wrong, also if NaN is right."""
SECTOR_BYTES = 32
"""What a GPU reads at least. If whole cache lines were poisoned, a part of each would show it."""
SECTORS = 2048
"""How many sectors of all outputs together are poisoned again."""
_WITH_USUAL_POISONS = "float8_e4m3fnuz", "float8_e5m2fnuz", "float4_e2m1fn_x2", "float8_e8m0fnu"
"""Floating types in which one of them is a number that an output may well have."""

Poisons = tuple[int, int]
"""The bytes of every second element, from the first one and from the second one on."""


def poisons_of(node: values.TensorNode) -> Poisons:
    """Return the bytes with which elements of a tensor are poisoned in turn for one call.

    In other types than the floating ones they are random. Any constant could be right for most of
    an output, such as -1, and a kernel would then only write the rest. A kernel can also read them,
    and one of the two truths is right for most of an output in half of the calls: they alternate.
    """
    dtype = values.DTYPES[node.dtype]
    if (dtype.is_floating_point or dtype.is_complex) and node.dtype not in _WITH_USUAL_POISONS:
        return POISONS
    if dtype is torch.bool:
        first = secrets.randbelow(2)
        return first, 1 - first
    return secrets.randbelow(256), secrets.randbelow(256)


def hidden_poisons() -> Poisons:
    """Return the bytes with which memory is poisoned in turn, whatever is in it.

    Each floating type but `float8_e8m0fnu`, where every second one is small, has large numbers of
    these bytes. In truths they are found, see `Answer.reader`.
    """
    return 0x78 | secrets.randbelow(4), 0xF8 | secrets.randbelow(4)


def poison(memory: torch.Tensor, node: values.TensorNode, hidden: Poisons | None) -> None:
    """Queue the poisoning of a tensor in this memory, with `hidden` bytes whatever its type."""
    there = memory[node.offset or 0 :][: node.reach]
    elements = there if hidden else there.view(node.span, node.itemsize)
    first, second = hidden or poisons_of(node)
    elements.fill_(first)
    elements[1::2].fill_(second)


class PoisonedSectors:
    """Random sectors of outputs that are poisoned again, immediately before the input is shown.

    Poisoning all of large outputs takes long, and the begin of them could be overwritten meanwhile.
    It is one operation of the same size for all outputs, because it is in the window of every call.
    """

    def __init__(
        self, memory: torch.Tensor, nodes: Sequence[values.TensorNode], hidden: Poisons | None
    ) -> None:
        whole = len(memory) // SECTOR_BYTES
        self.memory = memory[: whole * SECTOR_BYTES].view(whole, SECTOR_BYTES)
        begins, ends, sectors = [], [], []
        for node in nodes:
            begin = -(-(node.offset or 0) // SECTOR_BYTES)
            end = ((node.offset or 0) + node.reach) // SECTOR_BYTES
            if begin < end:
                begins.append(begin)
                ends.append(end)
                sectors.append(_sector(node, hidden))
        self.exist = bool(ends)
        """Whether there are any; outputs of a few numbers have none."""
        if self.exist:
            random = torch.Generator().manual_seed(secrets.randbits(32))
            until = (torch.tensor(ends) - torch.tensor(begins)).cumsum(0)
            chosen = torch.randint(int(until[-1]), (SECTORS,), generator=random)
            which = torch.bucketize(chosen, until, right=True)
            numbers = chosen + (torch.tensor(ends) - until)[which]
            poisoned = torch.tensor(sectors, dtype=torch.uint8)[which]
            self.numbers, self.poisoned = numbers.to(memory.device), poisoned.to(memory.device)

    def queue(self) -> None:
        """Queue their poisoning; the first time, this also loads the CUDA kernel for it."""
        if self.exist:
            self.memory.index_copy_(0, self.numbers, self.poisoned)


def _sector(node: values.TensorNode, hidden: Poisons | None) -> list[int]:
    first, second = hidden or poisons_of(node)
    size = 1 if hidden else node.itemsize
    return (([first] * size + [second] * size) * SECTOR_BYTES)[:SECTOR_BYTES]
