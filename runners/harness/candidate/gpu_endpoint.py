"""The candidate's side of a call on the GPU; input and output are in memory that the judge owns."""

import mmap
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from runners.harness.gpu import memory
from runners.harness.gpu.device_code import ReadyLaunch
from runners.harness.gpu.handover import DONE, RELEASED
from runners.harness.gpu.warm import load_empty_module, make_context
from runners.harness.protocol import arena, channel, values

BUFFERS: dict[channel.Transport, type[memory.DeviceBuffer] | type[memory.HostBuffer]] = {
    "vmm": memory.DeviceBuffer,
    "pinned-host": memory.HostBuffer,
}
"""Transport name -> the class that maps the shared memory."""
Describe = Callable[[object, Callable[[torch.Tensor], torch.Tensor]], channel.CandidateReply]
"""Returns the reply for an output; the inner function maps each tensor to the one to describe."""

ALIGNMENT = 16
"""Bytes. The judge's copy of an output in place is slower at another address: 18 us for 16 MiB."""
FILLED_APART = 8
"""Parts of an output that the calibration kernel writes one by one; it writes others together."""


class KernelError(Exception):
    """Device code could not be launched or failed while it ran."""


class GpuEndpoint:
    """The candidate's CUDA context, with the judge's memory mapped into it."""

    def __init__(self, host: mmap.mmap, shared: channel.DeviceFds, fds: list[int]) -> None:
        make_context()
        self.host = host
        self.turn = 0
        self.shared = shared
        buffer = BUFFERS[shared.transport]
        self.memory = buffer.adopt(fds[0], shared.size)
        self.words = buffer.adopt(fds[1], shared.words_size)
        self.remote = shared.transport == "pinned-host"
        whole = self.memory.bytes
        self.local = torch.empty_like(whole[: shared.output_at]) if self.remote else whole
        size = shared.places_at - shared.pool_at
        self.pool = memory.OutputPool(self.memory.address + shared.pool_at, size) if size else None
        self.stream = torch.cuda.default_stream()
        self.begin, self.end = memory.timed_event(), memory.timed_event()
        self.fills: dict[tuple[values.TensorNode, ...], Callable[[Any], Any]] = {}

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
    ) -> tuple[Any, float]:
        """Run the kernel between two CUDA events; return its output and the claimed time in ns.

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
    ) -> tuple[Any, float]:
        """Do what `call` does, without translating errors.

        A call that is queued ahead makes all its launches before the input is there, and reports
        where the output will be. Any other call first waits for its input, and copies its whole
        output. Copying an output into the shared memory counts as the kernel's time.
        """
        data = self._argument(order)
        load_empty_module()
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
        return output, self.begin.elapsed_time(self.end) * 1e6

    def run_train(
        self,
        kernels: Sequence[Callable[[Any], Any]],
        orders: Sequence[channel.CandidateRequest],
        described: Describe,
        tell: Callable[[channel.CandidateReply], None],
        *,
        stamped: bool,
    ) -> tuple[list[Any], tuple[float, ...]]:
        """Queue one call for each request, each behind its own input, then wait for all.

        Return the outputs and, if `stamped`, the time of each call by CUDA events, in ns.
        """
        data = [self._argument(each) for each in orders]
        load_empty_module()
        stamps = [[memory.timed_event(), memory.timed_event()] for _ in orders] if stamped else []
        outputs, queued = [], []
        for number, (kernel, order) in enumerate(zip(kernels, orders, strict=True)):
            self.turn += 1
            memory.await_word(self.words.address + RELEASED, self.turn)
            with self._allocating():
                if stamped:
                    stamps[number][0].record(self.stream)
                outputs.append(kernel(data[number]))
                with torch.cuda.stream(self.stream):
                    queued.append(self._deliver(outputs[-1], order, described))
                if stamped:
                    stamps[number][1].record(self.stream)
        failed = next((each for each in queued if each and each.output is None), None)
        nodes = tuple(each.output for each in queued if each and each.output is not None)
        tell(failed or channel.CandidateReply(status=channel.Status.DONE, outputs=nodes))
        torch.cuda.synchronize()
        return outputs, tuple(begin.elapsed_time(end) * 1e6 for begin, end in stamps)

    def _deliver(
        self, output: object, order: channel.CandidateRequest, described: Describe
    ) -> channel.CandidateReply | None:
        """Queue the copies of an output into its rooms; return a description of the output.

        A tensor that the judge can capture in place is described and not copied, unless it overlaps
        one before it. Return None for one tensor of a call that is not queued ahead.
        """
        rooms, taken = iter(order.rooms), arena.SeparateSpans()
        laid_out = self._laying_out() if order.lays_out else None
        if isinstance(output, torch.Tensor) and not order.ahead:
            laid_out(output) if laid_out else self._copied(output, next(rooms, None))
            return None  # describing it takes time, which would count as the kernel's

        def delivered(tensor: torch.Tensor) -> torch.Tensor:
            room = next(rooms, None)
            fits = order.lays_out or _fits(tensor, room)
            in_place = order.ahead and fits and self._is_capturable(tensor)
            if in_place and taken.add(tensor.data_ptr(), arena.reach(tensor)):
                return tensor
            return laid_out(tensor) if laid_out else self._copied(tensor, room)

        return described(output, delivered)

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

    def _laying_out(self) -> Callable[[torch.Tensor], torch.Tensor]:
        """Return a function that copies tensors, in order, to where the judge expects an output.

        The judge lays out a right output by the same rule and captures it there. A tensor that has
        no place is returned as it is; the output is then wrong.
        """
        end = self.shared.output_at

        def laid_out(tensor: torch.Tensor) -> torch.Tensor:
            nonlocal end
            if tensor.layout is not torch.strided or tensor.device.type != "cuda":
                return tensor
            size = tensor.numel() * tensor.element_size()
            begin, end = end, end + arena.pages(size)
            if begin + size > self.shared.pool_at:
                return tensor
            copied = self.memory.bytes[begin : begin + size].view(tensor.dtype).view(tensor.shape)
            values.bits(copied).copy_(values.bits(tensor.detach()))
            return copied

        return laid_out

    def _copied(self, tensor: torch.Tensor, room: values.TensorNode | None) -> torch.Tensor:
        """Return the tensor's copy in its room, or the tensor itself if it does not fit there."""
        if room is None or not _fits(tensor, room):
            return tensor
        copied, given = memory.typed_view(self.memory.bytes, room), values.bits(tensor.detach())
        distance = tensor.data_ptr() - copied.data_ptr()
        is_there = distance == 0 and tensor.stride() == copied.stride()
        if not is_there and -arena.reach(tensor) < distance < room.reach:
            given = given.clone()  # torch copies no tensor to where a part of it is
        values.bits(copied).copy_(given)
        return copied

    def _is_capturable(self, tensor: torch.Tensor) -> bool:
        """Whether the judge can capture the tensor in place."""
        plain = tensor.layout is torch.strided and tensor.device.type == "cuda"
        if self.remote or not plain or tensor.is_conj() or tensor.is_neg():
            return False
        offset = tensor.data_ptr() - self.memory.address
        within = 0 <= offset <= self.shared.size - arena.reach(tensor)
        dense = torch.ops.aten.is_non_overlapping_and_dense(tensor)
        return within and dense and offset % max(ALIGNMENT, tensor.element_size()) == 0

    def calibration_kernel(self, order: channel.CandidateRequest) -> Callable[[Any], Any]:
        """Return the calibration kernel, which reads the input and fills the output's bytes.

        It leaves the cache in a state like that after a real kernel. Its buffers are allocated
        here, before its window. For an output without elements it starts no CUDA kernel.
        """
        if order.rooms and not any(room.reach for room in order.rooms):
            outputs = tuple(_output_in(self.memory.bytes, room) for room in order.rooms)
            return lambda _: outputs
        if order.rooms not in self.fills:
            make = self._make_fill if order.train is None else self._make_combined
            self.fills[order.rooms] = make(order)
        return self.fills[order.rooms]

    def _make_combined(self, order: channel.CandidateRequest) -> Callable[[Any], Any]:
        """Return the calibration kernel of a train: one CUDA kernel that both reads and writes.

        Work that is still in flight at the end of a kernel lengthens its window. One CUDA kernel
        for reading and one for writing would leave less work in flight.
        """
        outputs = tuple(_output_in(self.memory.bytes, room) for room in order.rooms)
        parts = [_bytes_of(self.memory.bytes, room) for room in _on_device(order.rooms)]
        parts.sort(key=torch.numel)
        combine = _combining(self._input_words(order), _words(parts[-1])) if parts else None
        if combine is None:
            return self._make_fill(order)

        def run(_: object) -> Any:  # noqa: ANN401 - as the task's output is
            for part in parts[:-1]:
                part.fill_(1)
            combine()
            return outputs

        run(None)  # loads its CUDA kernels
        return run

    def _input_words(self, order: channel.CandidateRequest) -> torch.Tensor:
        """Return the bytes of the input, from its first tensor to its last one, as numbers."""
        nodes = _on_device(() if order.value is None else values.tensors(order.value))
        first = min((each.offset or 0 for each in nodes), default=0)
        end = max((each.reach + (each.offset or 0) for each in nodes), default=0)
        return _words(self.local[first:end])

    def _make_fill(self, order: channel.CandidateRequest) -> Callable[[Any], Any]:
        whole = self.memory.bytes
        if self.remote:  # then a kernel's output is in private device memory
            whole = torch.empty(self.shared.pool_at, dtype=torch.uint8, device="cuda")
        outputs = tuple(_output_in(whole, room) for room in order.rooms)
        parts = [_bytes_of(whole, room) for room in _on_device(order.rooms)]
        parts = parts or [torch.empty(1, dtype=torch.uint8, device="cuda")]
        words = self._input_words(order)
        read = words if words.numel() else parts[0]

        def fill(_: object) -> Any:  # noqa: ANN401 - as the task's output is
            read.amax()
            for part in parts[:FILLED_APART]:
                part.fill_(1)
            if parts[FILLED_APART:]:
                torch._foreach_zero_(parts[FILLED_APART:])
            return outputs

        fill(None)  # loads its CUDA kernels
        return fill


def _words(part: torch.Tensor) -> torch.Tensor:
    """View bytes as integers of four bytes; up to three bytes at the end are left out."""
    return part[: part.numel() & ~3].view(torch.int32)


def _combining(source: torch.Tensor, target: torch.Tensor) -> Callable[[], object] | None:
    """Return a function that reads `source` and writes `target` in one CUDA kernel.

    It may skip a few numbers at the end of the source. If the target is longer, it writes only the
    largest multiple of the source's length. None if either is empty.
    """
    n, m = source.numel(), target.numel()
    if not n or not m:
        return None
    if n <= m:
        wide = target[: m // n * n].view(-1, n)
        return lambda: torch.bitwise_not(source.expand_as(wide), out=wide)
    rows = -(-n // m)
    parts = source.as_strided((rows, m), ((n - m) // (rows - 1), 1))
    if rows == 2:
        return lambda: torch.bitwise_xor(parts[0], parts[1], out=target)
    return lambda: torch.amax(parts, 0, out=target)


def _fits(tensor: torch.Tensor, room: values.TensorNode | None) -> bool:
    if room is None:
        return False
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
