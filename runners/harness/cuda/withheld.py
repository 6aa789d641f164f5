"""Lines of every input that appear last, once the judge's flush is done.

An input lies in memory for the whole of the flush, some fifty microseconds on a large GPU. No
kernel of a candidate can run then, but the GPU's copy engines can: they would bring a small input
to the host, where its answer could be had before the candidate is let go. Until then some lines
hold what belongs into others, at places that nobody can foresee.
"""

import secrets
from collections.abc import Sequence

import torch

from runners.harness.values import TensorNode

LINE = 128
"""Bytes of a line of the cache."""
SHARE = 8
"""One line in so many is withheld from a small tensor, and at least one of any."""
MOST = 512
"""How many lines are withheld in all: few enough that a large input stays cold."""


class Withheld:
    """The lines of the next input that lie wrong in `staging` and that are put right at the end."""

    def __init__(self, staging: torch.Tensor) -> None:
        """Staging is as many bytes as the shared input, whole lines."""
        self.staging = _lines_of(staging)
        self.random = torch.Generator().manual_seed(secrets.randbits(63))
        self._note([])

    def _note(self, places: Sequence[int]) -> None:
        self.places = torch.tensor(sorted({*places}) or [0]).to(self.staging.device)
        self.right = self.staging[self.places]

    def take(self, nodes: Sequence[TensorNode]) -> None:
        """Withhold lines of tensors that lie in staging, all bytes of which are right."""
        places = [place for node in nodes for place in self._chosen(node, MOST // len(nodes))]
        self._note(places)
        if places:
            wrong = self.right.roll(1, 0) if len(self.right) > 1 else ~self.right
            self.staging.index_copy_(0, self.places, wrong)

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


def _lines_of(memory: torch.Tensor) -> torch.Tensor:
    return memory.view(torch.int64).view(-1, LINE // 8)
