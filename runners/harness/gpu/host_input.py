"""The host part of a task's input, which the GPU writes within the window."""

import os

import torch

from runners.harness.gpu.buffers import Withheld
from runners.harness.gpu.memory import HostBuffer, ignoring_broken_context, typed_view
from runners.harness.protocol import values
from runners.harness.protocol.arena import ALIGNMENT, Arena


class HostInput:
    """The host tensors of the current input, which the GPU writes into an arena of the candidate.

    If a CPU copied them, the time would vary by more than most kernels take. The judge therefore
    keeps a copy on the GPU and queues the transfer to the host like all other steps of a window.
    """

    def __init__(self, arena: Arena) -> None:
        self.arena = arena
        self.pinned: HostBuffer | None = None
        self.staging = torch.empty(0, dtype=torch.uint8)
        self.withheld: Withheld | None = None
        """The lines of the current input that become visible last; None if all is on the GPU."""

    def stage(self, node: values.Node, value: object) -> None:
        """Prepare the host tensors of a value in memory that the candidate cannot see."""
        pairs = zip(values.tensors(node), values.leaves(value), strict=True)
        host_pairs = [
            (tensor_node, tensor) for tensor_node, tensor in pairs if values.on_host(tensor_node)
        ]
        self.withheld = None
        if not host_pairs:
            return
        self._reserve(
            max((tensor_node.offset or 0) + tensor_node.reach for tensor_node, _ in host_pairs)
        )
        for tensor_node, tensor in host_pairs:
            values.copy_into(typed_view(self.staging, tensor_node), tensor)
        self.withheld = Withheld(self.staging)
        self.withheld.take([tensor_node for tensor_node, _ in host_pairs])

    def _reserve(self, size: int) -> None:
        size = -(-size // ALIGNMENT) * ALIGNMENT
        if size <= self.staging.numel():
            return
        self.close()
        self.pinned = HostBuffer.adopt(os.dup(self.arena.fd), size)
        self.staging = torch.zeros(size, dtype=torch.uint8, device="cuda")
        self.arena.count_as_input(size)

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
        """Unregister the arena's memory from the GPU."""
        if self.pinned:
            with ignoring_broken_context():
                self.pinned.close()
        self.pinned = None
