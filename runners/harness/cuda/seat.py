"""A candidate at work on the GPU: judge-owned device buffers, flushed and poisoned by the judge."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

import torch
from typing_extensions import override

from runners.contract.verdict import Verdict
from runners.harness.arena import Arena, Layout, Plan, lay_out
from runners.harness.channel import DeviceFds, Operation, Order, Reply, encode
from runners.harness.cuda.driver import DriverError, typed_view
from runners.harness.cuda.pinned import HostBuffer
from runners.harness.cuda.vmm import DeviceBuffer
from runners.harness.deadline import Deadline
from runners.harness.exchange import Exchange, Window
from runners.harness.handle import Handle
from runners.harness.integrity import Changes, refuse_changed
from runners.harness.process import UnreadableError
from runners.harness.ruling import Ruling
from runners.harness.seat import Seat, enlisted, host_arena
from runners.harness.session import Session
from runners.harness.values import (
    DTYPES,
    Node,
    TensorNode,
    UndescribableError,
    describe,
    leaves,
    restore,
    tensors,
)

POISON = 0xFF
"""Fills every output byte before a call: NaN in floating types, never a right answer by luck."""
SPARE = 64 << 20
"""Bytes of output room beyond twice the input, where no reference tells the output's size."""


@dataclass(slots=True)
class Buffers:
    """What judge and candidate share on the device, and what the judge keeps to itself."""

    input: DeviceBuffer | HostBuffer
    staging: torch.Tensor
    """The judge's own copy of the next input, always at one place, since that matters for time."""
    output: DeviceBuffer | HostBuffer
    snapshot: torch.Tensor
    """The judge's own copy of the output buffer, taken before the window closes."""
    flush: torch.Tensor

    @classmethod
    def create(cls, room: Plan, expected: Node | None) -> Self:
        """Buffers for inputs like `room`; the flush is twice as large as the L2 cache."""
        wanted = device_bytes(expected) if expected is not None else 2 * room.device_size + SPARE
        cache = torch.cuda.get_device_properties(0).L2_cache_size
        inputs, output = share(max(1, room.device_size), max(1, wanted))
        return cls(
            input=inputs,
            staging=torch.empty_like(inputs.bytes),
            output=output,
            snapshot=torch.empty_like(output.bytes),
            flush=torch.empty(2 * cache, dtype=torch.uint8, device="cuda"),
        )

    def close(self) -> None:
        """Free the shared memory."""
        self.input.close()
        self.output.close()


def share(*sizes: int) -> list[DeviceBuffer] | list[HostBuffer]:
    """Shared buffers of these sizes: on the device, or in pinned host memory where it refuses."""
    torch.cuda.init()  # type: ignore[no-untyped-call]
    torch.zeros(1, device="cuda")  # makes the context
    made: list[DeviceBuffer] = []
    try:
        for size in sizes:
            made.append(DeviceBuffer.create(size))  # noqa: PERF401 - what was made must be known
    except (DriverError, AttributeError):
        for each in made:
            each.close()
        return [HostBuffer.create(size) for size in sizes]
    return made


def device_bytes(node: Node) -> int:
    """Bytes of device memory up to the end of a laid out structure."""
    return max((each.reach + (each.offset or 0) for each in on_device(node)), default=0)


def on_device(node: Node) -> list[TensorNode]:
    """The tensors of a structure that lie on the GPU."""
    return [each for each in tensors(node) if each.device == "cuda"]


class DeviceSeat(Seat):
    """A candidate whose inputs and outputs lie in buffers that the judge owns."""

    def __init__(self, session: Session, handle: Handle, arena: Arena, buffers: Buffers) -> None:
        super().__init__(session, handle, arena)
        self.buffers = buffers

    @override
    def call(
        self, operation: Operation, value: object, expected: Node | None, deadline: Deadline
    ) -> Exchange:
        plan = self._plan(value)
        if plan.device_size > self.buffers.input.size:
            raise Ruling(Verdict.TASK_ERROR, "an input of the task grew between two seeds")
        self.arena.write(plan.node, value)
        if expected is None and operation is not Operation.TOUCH:
            expected = self._discover(plan, value, deadline)
        self.wanted = expected
        self._prepare(plan.node, value)
        order = Order(operation=operation, value=plan.node, output=self.wanted)
        window = Window(open=self._reveal, close=self._capture)
        return self.handle.race(self._packed(order), deadline, window, self.arena.words)

    def _discover(self, plan: Plan, value: object, deadline: Deadline) -> Node:
        """Without a reference output, one untimed call tells the structure of this one."""
        self._prepare(plan.node, value)
        order = Order(operation=Operation.RUN, value=plan.node)
        window = Window(open=self._reveal, close=self._capture)
        exchange = self.handle.race(self._packed(order), deadline, window, self.arena.words)
        if exchange.reply.output is None:
            raise Ruling(Verdict.DISALLOWED, "the candidate described no output")
        try:
            wanted = replan(exchange.reply.output)
            encode(order.model_copy(update={"operation": Operation.PROFILE, "output": wanted}))
        except (UnreadableError, UndescribableError, ValueError, RuntimeError) as error:
            raise Ruling(Verdict.WRONG_ANSWER, str(error)) from error
        if device_bytes(wanted) > self.buffers.output.size:
            raise Ruling(Verdict.WRONG_ANSWER, "the output is larger than this task allows")
        return wanted

    def _prepare(self, node: Node, value: object) -> None:
        for place, tensor in zip(tensors(node), leaves(value), strict=True):
            if place.device == "cuda":
                typed_view(self.buffers.staging, place).copy_(tensor)
        self.buffers.output.bytes.fill_(POISON)
        torch.cuda.synchronize()

    def _reveal(self) -> None:
        self.buffers.input.bytes.copy_(self.buffers.staging)
        self.buffers.flush.add_(1)
        torch.cuda.synchronize()

    def _capture(self) -> None:
        self.buffers.snapshot.copy_(self.buffers.output.bytes)
        torch.cuda.synchronize()

    @override
    def fetch(self, reply: Reply, expected: Node | None, deadline: Deadline) -> Any:
        if self.wanted is None:
            raise Ruling(Verdict.DISALLOWED, "the candidate described no output")
        self._places = iter(tensors(self.wanted))
        return super().fetch(reply, self.wanted, deadline)

    @override
    def _read(self, node: TensorNode, room: int) -> torch.Tensor:
        place = next(self._places)  # of the same structure, else it would not be read
        if node.device == "cpu":
            return self.handle.process.read(node, room)
        return typed_view(self.buffers.snapshot, place)

    @override
    def overhead(self, exchange: Exchange) -> float:
        return float(exchange.window_ns)

    @override
    def refuse_changes(self, data: object, reply: Reply) -> None:
        if reply.output is None or isinstance(self.buffers.input, HostBuffer):
            return  # from pinned memory the kernel got a copy of its own
        plan = lay_out(data)
        found = [typed_view(self.buffers.input.bytes, each) for each in on_device(plan.node)]
        wanted = [typed_view(self.buffers.staging, each) for each in on_device(plan.node)]
        pairs = Changes(on_device(plan.node), found, wanted)
        refuse_changed(pairs, self.handle.welcome.input_address, reply.output)


def replan(node: Node) -> Node:
    """Lay a described output out anew, contiguous, in a buffer of the judge's."""
    layout = Layout()

    def shape_of(place: TensorNode) -> torch.Tensor:
        dtype = DTYPES.get(place.dtype)
        if dtype is None or place.device != "cuda":
            raise UnreadableError(f"the output is a {place.dtype} tensor on device {place.device}")
        return torch.empty(place.shape, dtype=dtype, device="meta")

    return describe(restore(node, shape_of), lambda tensor: layout.place(tensor, "cuda"))


@contextmanager
def device_seat(session: Session, room: Plan, expected: Node | None) -> Iterator[DeviceSeat]:
    """A fresh candidate on the GPU."""
    buffers = Buffers.create(room, expected)
    fds = [buffers.input.fd, buffers.output.fd]
    shared = DeviceFds(
        transport=buffers.input.transport,
        input_size=buffers.input.size,
        output_size=buffers.output.size,
    )
    session.transport = shared.transport
    try:
        with host_arena(session, room) as arena, enlisted(session, arena, fds, shared) as handle:
            yield DeviceSeat(session, handle, arena, buffers)
    finally:
        buffers.close()
