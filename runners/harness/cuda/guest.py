"""The candidate's side of a call on the GPU: judge-owned memory in, judge-owned memory out."""

import mmap
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from runners.harness.arena import READY, Words, view
from runners.harness.channel import DeviceFds, Operation, Order, Transport
from runners.harness.cuda.driver import await_word, typed_view, write_word
from runners.harness.cuda.gate import DONE, RELEASED
from runners.harness.cuda.pinned import HostBuffer
from runners.harness.cuda.pool import OutputPool
from runners.harness.cuda.vmm import DeviceBuffer
from runners.harness.values import DTYPES, Node, TensorNode, leaves, restore, tensors

BUFFERS: dict[Transport, type[DeviceBuffer] | type[HostBuffer]] = {
    "vmm": DeviceBuffer,
    "pinned-host": HostBuffer,
}
"""How device memory may be shared, by transport."""


class Guest:
    """A candidate's CUDA context with the judge's memory mapped into it."""

    def __init__(self, host: mmap.mmap, shared: DeviceFds, fds: list[int]) -> None:
        torch.cuda.init()  # type: ignore[no-untyped-call]
        torch.zeros(1, device="cuda")  # makes the context
        self.host = host
        self.ready = Words(host)
        self.turn = 0
        self.shared = shared
        buffer = BUFFERS[shared.transport]
        self.memory = buffer.adopt(fds[0], shared.size)
        self.words = buffer.adopt(fds[1], shared.words_size)
        self.remote = shared.transport == "pinned-host"
        whole = self.memory.bytes
        self.local = torch.empty_like(whole[: shared.output_at]) if self.remote else whole
        room = shared.size - shared.pool_at
        self.pool = OutputPool(self.memory.address + shared.pool_at, room) if room else None
        self.stream = torch.cuda.default_stream()
        self.begin = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        self.end = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        self.filling: Callable[[Any], Any] = _nothing
        self.stand_in_for: tuple[Operation, Node | None] | None = None

    def fetch(self, node: TensorNode) -> torch.Tensor:
        """The input tensor that a node describes, on the device that it names."""
        return typed_view(self.local, node) if node.device == "cuda" else view(self.host, node)

    def call(self, kernel: Callable[[Any], Any], order: Order) -> tuple[Any, tuple[float, float]]:
        """Run the kernel between two events; gives its output and the claimed nanoseconds.

        A call that is queued ahead runs up to its last launch before the input is there; another
        one waits for it first.
        """
        if order.value is None:
            raise ValueError("an order without an input")
        data = restore(order.value, self.fetch)
        self.turn += 1
        await_word(self.words.address + RELEASED, self.turn)
        if not order.ahead:
            self.ready.write(READY, self.turn)
            self.stream.synchronize()
        if self.remote:
            self.local.copy_(self.memory.bytes[: self.shared.output_at])
        with self._allocating(order):
            self.begin.record(self.stream)
            output = kernel(data)
            self.end.record(self.stream)
        with torch.cuda.stream(self.stream):
            self._deliver(output, order.output)
        write_word(self.words.address + DONE, self.turn)
        self.ready.write(READY, self.turn)
        torch.cuda.synchronize()
        return output, (self.begin.elapsed_time(self.end) * 1e6, 0.0)

    def _allocating(self, order: Order) -> AbstractContextManager[None]:
        return self.pool.used() if self.pool and order.ahead else nullcontext()

    def _deliver(self, output: object, wanted: Node | None) -> None:
        """Copy the output's GPU tensors to where the judge wants them, if they are of that shape.

        What lies there already is not copied, and into the pool nothing is: it is the kernel's.
        """
        if wanted is None:
            return
        nodes, found = tensors(wanted), leaves(output)
        if len(nodes) != len(found):
            return
        for node, tensor in zip(nodes, found, strict=True):
            fits = tuple(tensor.shape) == node.shape and str(tensor.dtype) == f"torch.{node.dtype}"
            here = node.offset is not None and self._is_room(node.offset)
            if here and fits and node.device == tensor.device.type == "cuda":
                place = typed_view(self.memory.bytes, node)
                if place.data_ptr() != tensor.data_ptr():
                    place.copy_(tensor)

    def _is_room(self, offset: int) -> bool:
        return self.shared.output_at <= offset < self.shared.pool_at

    def stand_in(self, order: Order) -> Callable[[Any], Any]:
        """The trusted kernel for calibration: reads the input, fills as many bytes as the output.

        They lie where the output is wanted, or, for `COPY`, elsewhere. So it leaves the cache as a
        kernel does. What is made here is made before the window that it is used in.
        """
        if self.stand_in_for != (order.operation, order.output):
            self.stand_in_for = (order.operation, order.output)
            self.filling = self._filling(order)
        return self.filling

    def _filling(self, order: Order) -> Callable[[Any], Any]:
        nodes = [] if order.output is None else tensors(order.output)
        whole = self.memory.bytes
        if order.operation is Operation.COPY:
            whole = torch.empty_like(whole[: self.shared.pool_at])
        parts = [
            whole[node.offset or 0 :][: node.reach] for node in nodes if node.device == "cuda"
        ] or [torch.empty(1, dtype=torch.uint8, device="cuda")]

        def place(node: TensorNode) -> torch.Tensor:
            return typed_view(whole, node) if node.device == "cuda" else _on_host(node)

        ready = None if order.output is None else restore(order.output, place)

        used = max((each.reach + (each.offset or 0) for each in _inputs(order)), default=0)
        read = self.local[: used & ~3].view(torch.int32) if used > 3 else parts[0]

        def fill(_: object) -> Any:  # noqa: ANN401 - as the task's output is
            read.amax()
            for part in parts:
                part.fill_(1)
            return ready

        fill(None)  # loads what it is made of
        return fill


def _inputs(order: Order) -> list[TensorNode]:
    found = () if order.value is None else tensors(order.value)
    return [node for node in found if node.device == "cuda"]


def _on_host(node: TensorNode) -> torch.Tensor:
    return torch.zeros(node.shape, dtype=DTYPES[node.dtype])


def _nothing(_: object) -> None:
    """What stands in before anything was asked for."""
