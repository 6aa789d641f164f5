"""Lines of every input that appear last, once the judge's flush is done.

An input lies in memory for the whole of the flush, some fifty microseconds on a large GPU. No
kernel of a candidate can run then, but the GPU's copy engines can: they would bring a small input
to the host, where its answer could be had before the candidate is let go. Until then some lines
hold what belongs into others, at places that nobody can foresee, and every number there is a little
off: what does not depend on the order, such as a sum, would else be right at once.
"""

import secrets
from collections.abc import Mapping, Sequence

import torch

from runners.harness.values import TensorNode

LINE = 128
"""Bytes of a line of the cache."""
SHARE = 8
"""One line in so many is withheld from a small tensor, and at least one of any."""
LAST_BITS = {1: 2, 2: 6, 4: 18, 8: 40}
"""How many bits of a number of so many bytes may be wrong in a line: it stays of a likely size."""
MOST = 512
"""How many lines are withheld in all: few enough that a large input stays cold."""


class Withheld:
    """The lines of the next input that lie wrong in `staging` and that are put right at the end."""

    def __init__(self, staging: torch.Tensor) -> None:
        """Staging is as many bytes as the shared input, whole lines."""
        self.staging = _lines_of(staging)
        self.random = torch.Generator().manual_seed(secrets.randbits(63))
        self._note({})

    def _note(self, masks: Mapping[int, int]) -> None:
        places, lines = zip(*sorted(masks.items() or {0: 0}.items()), strict=True)
        self.places = torch.tensor(places).to(self.staging.device)
        self.masks = torch.tensor(lines).to(self.staging.device).unsqueeze(1)
        self.right = self.staging[self.places]

    def take(self, nodes: Sequence[TensorNode]) -> None:
        """Withhold lines of tensors that lie in staging, all bytes of which are right."""
        masks: dict[int, int] = {}
        for node in nodes:
            masks |= dict.fromkeys(self._chosen(node, MOST // len(nodes)), _last_bits(node))
        self._note(masks)
        if masks:
            noise = torch.randint(1 << 62, self.right.shape, device=self.staging.device)
            likely = self.right.roll(1, 0) ^ (noise & self.masks)
            self.staging.index_copy_(0, self.places, likely if len(masks) > 1 else ~self.right)

    def _chosen(self, node: TensorNode, most: int) -> list[int]:
        begin = node.offset or 0
        first, last = begin // LINE, (begin + node.reach - 1) // LINE
        count = min(-(-(last - first + 1) // SHARE), max(1, most))
        return torch.randint(first, last + 1, (count,), generator=self.random).tolist()

    def reveal(self, memory: torch.Tensor) -> None:
        """Put them right in the shared memory; all of it is queued."""
        _lines_of(memory).index_copy_(0, self.places, self.right)

    def restore(self) -> None:
        """Put them right in staging too."""
        self.staging.index_copy_(0, self.places, self.right)


def _last_bits(node: TensorNode) -> int:
    """Eight bytes in which those bits of each of the tensor's numbers are set that matter least."""
    if node.dtype == "bool":
        size, bits = 1, 1
    else:
        size = min(8, node.itemsize // (2 if node.dtype.startswith("complex") else 1))
        bits = LAST_BITS[size]
    return int.from_bytes(((1 << bits) - 1).to_bytes(size, "little") * (8 // size), "little")


def _lines_of(memory: torch.Tensor) -> torch.Tensor:
    return memory.view(torch.int64).view(-1, LINE // 8)
