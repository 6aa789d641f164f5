"""The candidate's side of a call on the GPU: judge-owned buffers in, judge-owned buffers out."""

import mmap
from collections.abc import Callable
from typing import Any

import torch

from runners.harness.arena import DONE, GO, READY, Words, view
from runners.harness.channel import DeviceFds, Order, Transport
from runners.harness.cuda.driver import typed_view
from runners.harness.cuda.pinned import HostBuffer
from runners.harness.cuda.vmm import DeviceBuffer
from runners.harness.values import Node, TensorNode, leaves, restore, tensors

BUFFERS: dict[Transport, type[DeviceBuffer] | type[HostBuffer]] = {
    "vmm": DeviceBuffer,
    "pinned-host": HostBuffer,
}
"""How device memory may be shared, by transport."""


class Guest:
    """A candidate's CUDA context with the judge's input and output buffers mapped into it."""

    def __init__(self, host: mmap.mmap, shared: DeviceFds, fds: list[int]) -> None:
        torch.cuda.init()  # type: ignore[no-untyped-call]
        torch.zeros(1, device="cuda")  # makes the context
        self.host = host
        self.words = Words(host)
        self.turn = 0
        buffer = BUFFERS[shared.transport]
        self.input = buffer.adopt(fds[0], shared.input_size)
        self.output = buffer.adopt(fds[1], shared.output_size)
        self.remote = shared.transport == "pinned-host"
        self.local = torch.empty_like(self.input.bytes) if self.remote else self.input.bytes
        self.begin = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        self.end = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]

    def fetch(self, node: TensorNode) -> torch.Tensor:
        """The input tensor that a node describes, on the device that it names."""
        return typed_view(self.local, node) if node.device == "cuda" else view(self.host, node)

    def call(self, kernel: Callable[[Any], Any], order: Order) -> tuple[Any, tuple[float, float]]:
        """Run the kernel between two events; gives its output and the claimed nanoseconds.

        Everything that needs no input is done before READY, everything that the judge need
        not wait for after DONE.
        """
        if order.value is None:
            raise ValueError("an order without an input")
        data = restore(order.value, self.fetch)
        self.turn += 1
        self.words.write(READY, self.turn)
        self.words.spin(GO, self.turn, _patient)
        if self.remote:
            self.local.copy_(self.input.bytes)
        self.begin.record()
        output = kernel(data)
        self.end.record()
        torch.cuda.synchronize()
        deliver(output, order.output, self.output.bytes)
        torch.cuda.synchronize()
        self.words.write(DONE, self.turn)
        return output, (self.begin.elapsed_time(self.end) * 1e6, 0.0)


def _patient() -> None:
    """A candidate waits as long as its judge lets it."""


def deliver(output: object, wanted: Node | None, buffer: torch.Tensor) -> None:
    """Copy the output's GPU tensors to where the judge wants them, if they are of that shape."""
    if wanted is None:
        return
    nodes, found = tensors(wanted), leaves(output)
    if len(nodes) != len(found):
        return
    for node, tensor in zip(nodes, found, strict=True):
        fits = tuple(tensor.shape) == node.shape and str(tensor.dtype) == f"torch.{node.dtype}"
        if node.device == "cuda" and tensor.device.type == "cuda" and fits:
            typed_view(buffer, node).copy_(tensor)


def stand_in(wanted: Node | None) -> Callable[[Any], Any]:
    """The trusted no-op for calibration: gives a ready output of the wanted structure."""
    ready = None if wanted is None else restore(wanted, _blank)
    return lambda _: ready


def _blank(node: TensorNode) -> torch.Tensor:
    dtype: torch.dtype = getattr(torch, node.dtype)
    blank = torch.empty_strided(node.shape, node.stride, dtype=dtype, device=node.device)
    # Memory that was never written reads faster than an output does.
    return blank.copy_(torch.rand(node.shape, device=node.device).mul_(100))
