"""The host tensors of an input, which the GPU itself writes into the shared host memory.

The time in which a CPU copies some MiB varies by more than most kernels take. The judge therefore
has a copy on the GPU and queues the transfer to the host like all other steps of a window.
"""

import os

import torch

from runners.harness.gpu.buffers import Withheld
from runners.harness.gpu.memory import HostBuffer, letting_go, typed_view
from runners.harness.protocol.arena import ALIGNMENT, Arena
from runners.harness.protocol.values import Node, bits, leaves, on_host, tensors


class HostInput:
    """The host tensors of the current input, in an arena that a candidate maps."""

    def __init__(self, arena: Arena) -> None:
        self.arena = arena
        self.pinned: HostBuffer | None = None
        self.staging = torch.empty(0, dtype=torch.uint8)
        self.withheld: Withheld | None = None
        """The lines of the current input that become visible last; None if all is on the GPU."""

    def lay(self, node: Node, value: object) -> None:
        """Prepare the host tensors of a value in memory that the candidate cannot see."""
        pairs = zip(tensors(node), leaves(value), strict=True)
        hosted = [(place, tensor) for place, tensor in pairs if on_host(place)]
        self.withheld = None
        if not hosted:
            return
        self._reserve(max((place.offset or 0) + place.reach for place, _ in hosted))
        for place, tensor in hosted:
            bits(typed_view(self.staging, place)).copy_(bits(tensor.detach()))
        self.withheld = Withheld(self.staging)
        self.withheld.take([place for place, _ in hosted])

    def _reserve(self, size: int) -> None:
        size = -(-size // ALIGNMENT) * ALIGNMENT
        if size <= self.staging.numel():
            return
        self.close()
        self.pinned = HostBuffer.adopt(os.dup(self.arena.fd), size)
        self.staging = torch.zeros(size, dtype=torch.uint8, device="cuda")
        self.arena.keep(size)

    def reveal(self) -> None:
        """Queue the transfer of all lines except the withheld ones."""
        if self.pinned and self.withheld:
            self.pinned.bytes.copy_(self.staging)

    def complete(self) -> None:
        """Queue the transfer of the withheld lines."""
        if self.pinned and self.withheld:
            self.withheld.reveal(self.pinned.bytes)

    def restore(self) -> None:
        """Queue a write of the correct lines to the judge's copy."""
        if self.withheld:
            self.withheld.restore()

    def close(self) -> None:
        """Unregister the arena's memory."""
        if self.pinned:
            with letting_go():
                self.pinned.close()
        self.pinned = None
