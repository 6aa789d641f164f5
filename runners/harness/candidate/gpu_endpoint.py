"""The candidate's side of a call on the GPU; input and output are in memory that the judge owns."""

import mmap
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from runners.harness.gpu import memory
from runners.harness.gpu.device_code import ReadyLaunch
from runners.harness.gpu.handover import DONE, RELEASED
from runners.harness.protocol import arena, channel, values

BUFFERS: dict[channel.Transport, type[memory.DeviceBuffer] | type[memory.HostBuffer]] = {
    "vmm": memory.DeviceBuffer,
    "pinned-host": memory.HostBuffer,
}
"""Transport name -> the class that maps the shared memory."""
Describe = Callable[[object, Callable[[torch.Tensor], torch.Tensor]], channel.CandidateReply]
"""Returns the reply for an output; the inner function maps each tensor to the one to describe."""


class KernelError(Exception):
    """Device code could not be launched or failed while it ran."""


class GpuEndpoint:
    """The candidate's CUDA context, with the judge's memory mapped into it."""

    def __init__(self, host: mmap.mmap, shared: channel.DeviceFds, fds: list[int]) -> None:
        torch.cuda.init()  # type: ignore[no-untyped-call]
        torch.zeros(1, device="cuda")  # creates the context
        self.host = host
        self.turn = 0
        self.shared = shared
        buffer = BUFFERS[shared.transport]
        self.memory = buffer.adopt(fds[0], shared.size)
        self.words = buffer.adopt(fds[1], shared.words_size)
        self.remote = shared.transport == "pinned-host"
        whole = self.memory.bytes
        self.local = torch.empty_like(whole[: shared.output_at]) if self.remote else whole
        room = shared.size - shared.pool_at
        self.pool = memory.OutputPool(self.memory.address + shared.pool_at, room) if room else None
        self.stream = torch.cuda.default_stream()
        self.begin = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        self.end = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        self.fill: Callable[[Any], Any] = _do_nothing
        self.fill_rooms: tuple[values.TensorNode, ...] | None = None
        self._load()

    def _load(self) -> None:
        """Load the CUDA kernels of the calibration kernel now, so that no window pays for it."""
        numbers = torch.zeros(1, dtype=torch.int32, device="cuda")
        numbers.view(torch.uint8).fill_(1)
        numbers.amax()
        torch.cuda.synchronize()

    def fetch(self, node: values.TensorNode) -> torch.Tensor:
        """Return the input tensor that a node describes, on the device that the node names."""
        return (
            memory.typed_view(self.local, node)
            if node.device == "cuda"
            else arena.view(self.host, node)
        )

    def call(
        self,
        kernel: Callable[[Any], Any],
        order: channel.CandidateRequest,
        described: Describe,
        tell: Callable[[channel.CandidateReply], None],
    ) -> tuple[Any, tuple[float, float]]:
        """Run the kernel between two CUDA events; return its output and the claimed times in ns.

        For device code, CUDA's errors become KernelError with CUDA's name of the error, because
        there is no useful traceback.
        """
        try:
            return self._call(kernel, order, described, tell)
        except (memory.DriverError, RuntimeError) as error:
            if order.launch is None:
                raise
            reason = error.reason if isinstance(error, memory.DriverError) else memory.broken_by()
            raise KernelError(reason or str(error)) from None

    def _call(
        self,
        kernel: Callable[[Any], Any],
        order: channel.CandidateRequest,
        described: Describe,
        tell: Callable[[channel.CandidateReply], None],
    ) -> tuple[Any, tuple[float, float]]:
        """Do what `call` does, without translating errors.

        A call that is queued ahead makes all its launches before the input is there, and reports
        where the output will be. Any other call first waits for its input, and copies its whole
        output. Copying an output into the shared memory counts as the kernel's time.
        """
        data = self._argument(order)
        self.turn += 1
        memory.await_word(self.words.address + RELEASED, self.turn)
        if not order.ahead:
            tell(channel.CandidateReply(status=channel.Status.DONE))
            self.stream.synchronize()
        if self.remote:
            self.local.copy_(self.memory.bytes[: self.shared.output_at])
        with self._allocating():
            self.begin.record(self.stream)
            output = kernel(data)
            if self.remote:
                self.end.record(self.stream)
            with torch.cuda.stream(self.stream):
                queued = self._deliver(output, order, described)
            if not self.remote:
                self.end.record(self.stream)
        memory.write_word(self.words.address + DONE, self.turn)
        if order.ahead and queued:
            tell(queued)
        torch.cuda.synchronize()
        return output, (self.begin.elapsed_time(self.end) * 1e6, 0.0)

    def _deliver(
        self,
        output: object,
        order: channel.CandidateRequest,
        described: Describe,
    ) -> channel.CandidateReply | None:
        """Queue the copies of an output into its rooms; return a description of the output.

        A tensor that the judge can capture in place is described and not copied. Return None if the
        output is one tensor of a call that is not queued ahead.
        """
        rooms = iter(order.rooms)
        if isinstance(output, torch.Tensor) and not order.ahead:
            self._copied(output, next(rooms, None))
            return None  # describing it takes time, which would count as the kernel's
        deliver = self._in_place_or_copied if order.ahead else self._copied
        return described(output, lambda each: deliver(each, next(rooms, None)))

    def _argument(self, order: channel.CandidateRequest) -> Any:  # noqa: ANN401 - as the task's input is
        """Return the kernel's argument: the input or, for device code, a launch on the input."""
        if order.value is None:
            raise ValueError("a request without an input")
        data = values.restore(order.value, self.fetch)
        if order.launch is None:
            return data
        if not self.remote:
            rooms = [memory.typed_view(self.memory.bytes, room) for room in order.rooms]
            return ReadyLaunch(order.launch, values.leaves(data), rooms)
        own = tuple(
            torch.empty(room.shape, dtype=values.DTYPES[room.dtype], device="cuda")
            for room in order.rooms
        )
        return ReadyLaunch(order.launch, values.leaves(data), own, own)

    def _allocating(self) -> AbstractContextManager[None]:
        return self.pool.used() if self.pool else nullcontext()

    def _in_place_or_copied(
        self, tensor: torch.Tensor, room: values.TensorNode | None
    ) -> torch.Tensor:
        """Return an output tensor itself if the judge can capture it in place, otherwise a copy."""
        if room is not None and _fits(tensor, room) and self._is_capturable(tensor, room):
            return tensor
        return self._copied(tensor, room)

    def _copied(self, tensor: torch.Tensor, room: values.TensorNode | None) -> torch.Tensor:
        """Return the tensor's copy in its room, or the tensor itself if it does not fit there."""
        if room is None or not _fits(tensor, room):
            return tensor
        copied = memory.typed_view(self.memory.bytes, room)
        values.bits(copied).copy_(values.bits(tensor.detach()))
        return copied

    def _is_capturable(self, tensor: torch.Tensor, room: values.TensorNode) -> bool:
        """Whether the judge can capture the tensor in place."""
        if self.remote or tensor.is_conj() or tensor.is_neg():
            return False
        offset, size = tensor.data_ptr() - self.memory.address, arena.reach(tensor)
        within = 0 <= offset <= self.shared.size - size
        return within and size <= room.reach and offset % tensor.element_size() == 0

    def calibration_kernel(self, order: channel.CandidateRequest) -> Callable[[Any], Any]:
        """Return the calibration kernel, which reads the input and fills the output's bytes.

        It leaves the cache in a state like that after a real kernel. Its buffers are allocated
        here, before the window in which it runs.
        """
        if self.fill_rooms != order.rooms:
            self.fill_rooms = order.rooms
            self.fill = self._make_fill(order)
        return self.fill

    def _make_fill(self, order: channel.CandidateRequest) -> Callable[[Any], Any]:
        whole = self.memory.bytes
        if self.remote:  # then a kernel's output is in private device memory
            whole = torch.empty(self.shared.pool_at, dtype=torch.uint8, device="cuda")
        outputs = tuple(_output_in(whole, room) for room in order.rooms)
        parts = [_bytes_of(whole, room) for room in _on_device(order.rooms)]
        parts = parts or [torch.empty(1, dtype=torch.uint8, device="cuda")]
        inputs = _on_device(() if order.value is None else values.tensors(order.value))
        used = max((each.reach + (each.offset or 0) for each in inputs), default=0)
        read = self.local[: used & ~3].view(torch.int32) if used > 3 else parts[0]

        def fill(_: object) -> Any:  # noqa: ANN401 - as the task's output is
            read.amax()
            for part in parts:
                part.fill_(1)
            return outputs

        fill(None)  # loads its CUDA kernels
        return fill


def _fits(tensor: torch.Tensor, room: values.TensorNode) -> bool:
    same = tuple(tensor.shape) == room.shape and str(tensor.dtype) == f"torch.{room.dtype}"
    plain = tensor.layout is torch.strided
    return same and plain and room.device == tensor.device.type == "cuda"


def _on_device(nodes: tuple[values.TensorNode, ...]) -> list[values.TensorNode]:
    return [node for node in nodes if node.device == "cuda"]


def _output_in(whole: torch.Tensor, room: values.TensorNode) -> torch.Tensor:
    """Return the output tensor in its room; zeros if it is on the host."""
    if room.device == "cuda":
        return memory.typed_view(whole, room)
    return torch.zeros(room.shape, dtype=values.DTYPES[room.dtype])


def _bytes_of(whole: torch.Tensor, room: values.TensorNode) -> torch.Tensor:
    begin = room.offset or 0
    return whole[begin : begin + room.reach]


def _do_nothing(_: object) -> None:
    """The calibration kernel before the first calibration request."""
