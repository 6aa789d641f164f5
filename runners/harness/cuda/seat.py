"""A candidate at work on the GPU: judge-owned device buffers, flushed and poisoned by the judge."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Self

import torch
from typing_extensions import override

from runners.contract.verdict import Verdict
from runners.harness.arena import Arena, Layout, Plan, lay_out
from runners.harness.channel import DeviceFds, Operation, Order, Reply, encode
from runners.harness.cuda.driver import DriverError, typed_view
from runners.harness.cuda.gate import Crossing, Gate
from runners.harness.cuda.pinned import HostBuffer
from runners.harness.cuda.pool import GRAIN
from runners.harness.cuda.readings import first_gpu
from runners.harness.cuda.vmm import DeviceBuffer
from runners.harness.deadline import Deadline
from runners.harness.exchange import Exchange
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
    replaced,
    restore,
    tensors,
)

POISON = 0xFF
"""Fills every output byte before a call: NaN in floating types, never a right answer by luck."""
SPARE = 64 << 20
"""Bytes of output room beyond twice the input, where no reference tells the output's size."""
POOL_SPARE = 128 << 20
"""Bytes of pool beyond four times the output."""
CONTEXT_BYTES = 1 << 30
"""What a process with a CUDA context takes of the GPU, generously."""
PATIENCE_S = 0.1
"""How long a candidate may take to queue its call; who waits for the GPU in it takes for ever."""
REHEARSALS = 2
"""Untimed calls ahead of their input: the first one shows where the output lies, the second one
whether it lies there again."""


def aligned(size: int) -> int:
    """The size, rounded up to what the driver maps at once."""
    return -(-size // GRAIN) * GRAIN


@dataclass(slots=True)
class Buffers:
    """What judge and candidate share on the device, and what the judge keeps to itself."""

    memory: DeviceBuffer | HostBuffer
    """Shared: the input, the room for copied outputs, and the pool of the kernel's allocations."""
    words: DeviceBuffer | HostBuffer
    output_at: int
    pool_at: int
    staging: torch.Tensor
    """The judge's own copy of the next input, always at one place, since that matters for time."""
    flush: torch.Tensor

    @classmethod
    def create(cls, room: Plan, expected: Node | None) -> Self:
        """Buffers for inputs like `room`; the flush is twice as large as the L2 cache."""
        wanted = device_bytes(expected) if expected is not None else 2 * room.device_size + SPARE
        output_at = aligned(max(1, room.device_size))
        pool_at = output_at + aligned(max(1, wanted))
        (memory, words), pool = share(pool_at, pool_size(expected, wanted))
        made = cls(
            memory=memory,
            words=words,
            output_at=output_at,
            pool_at=pool_at if pool else memory.size,
            staging=torch.empty(output_at, dtype=torch.uint8, device="cuda"),
            flush=torch.zeros(2 * l2_cache_bytes(), dtype=torch.uint8, device="cuda"),
        )
        made.reveal()  # loads what it is made of: nothing can be loaded while a stream waits
        return made

    def reveal(self) -> None:
        """Let the candidate see the next input, and leave nothing of it in the cache."""
        self.memory.bytes[: self.output_at].copy_(self.staging)
        self.flush.add_(1)

    def close(self) -> None:
        """Free the shared memory."""
        self.memory.close()
        self.words.close()


def l2_cache_bytes() -> int:
    """The size of this GPU's level-two cache."""
    return int(torch.cuda.get_device_properties(0).L2_cache_size)


def pool_size(expected: Node | None, wanted: int) -> int:
    """Bytes for the kernel's own allocations, in which an output may lie; 0 where room is scarce.

    Torch asks for segments of up to 20 MiB even for small tensors, and scratch memory takes its
    part as well.
    """
    if expected is None:
        return 0
    size = aligned(4 * wanted + POOL_SPARE)
    return size if size < torch.cuda.mem_get_info()[0] // 8 else 0


def starts_at_once(room: Plan, expected: Node | None) -> int:
    """How many candidates may wait at once, without filling the GPU's memory."""
    wanted = 0 if expected is None else device_bytes(expected)
    each = CONTEXT_BYTES + room.device_size + 5 * wanted + POOL_SPARE
    free, _ = torch.cuda.mem_get_info()
    return max(1, free // 2 // each)


def share(fixed: int, pool: int) -> tuple[list[DeviceBuffer] | list[HostBuffer], int]:
    """Shared memory and words, and how much of the memory is a pool.

    They are on the device, or, where it refuses, in pinned host memory, which has no pool.
    """
    torch.cuda.init()  # type: ignore[no-untyped-call]
    torch.zeros(1, device="cuda")  # makes the context
    made: list[DeviceBuffer] = []
    try:
        for size in (fixed + pool, GRAIN):
            made.append(DeviceBuffer.create(size))  # noqa: PERF401 - what was made must be known
    except (DriverError, AttributeError):
        for each in made:
            each.close()
        return [HostBuffer.create(size) for size in (fixed, GRAIN)], 0
    return made, pool


def device_bytes(node: Node) -> int:
    """Bytes of device memory up to the end of a laid out structure."""
    return max((each.reach + (each.offset or 0) for each in on_device(node)), default=0)


def on_device(node: Node) -> list[TensorNode]:
    """The tensors of a structure that lie on the GPU."""
    return [each for each in tensors(node) if each.device == "cuda"]


class DeviceSeat(Seat):
    """A candidate whose inputs and outputs lie in memory that the judge owns."""

    def __init__(self, session: Session, handle: Handle, arena: Arena, buffers: Buffers) -> None:
        super().__init__(session, handle, arena)
        self.buffers = buffers
        self.gate = Gate(buffers.words, arena.words)
        self.device_base = handle.welcome.device_address
        self.landed: Node | None = None
        self.copied = True
        self.snapshots: list[torch.Tensor] = []
        self.of: Node | None = None

    @override
    def call(
        self, operation: Operation, value: object, expected: Node | None, deadline: Deadline
    ) -> Exchange:
        plan = self._plan(value)
        if plan.device_size > self.buffers.output_at:
            raise Ruling(Verdict.TASK_ERROR, "an input of the task grew between two seeds")
        trusted = operation in (Operation.TOUCH, Operation.COPY)
        if expected is None and not trusted:
            expected = self._discover(plan, value, deadline)
        at_rest = expected and self._at_landing(expected)
        self.wanted = at_rest if trusted or self.copies else self.landed or at_rest
        exchange = self._cross(operation, plan, value, deadline, ahead=trusted or self.ahead)
        return exchange if trusted else self._settled(exchange, at_rest)

    def _cross(
        self, operation: Operation, plan: Plan, value: object, deadline: Deadline, *, ahead: bool
    ) -> Exchange:
        """One order through the gate. An input with parts on the host cannot be called ahead."""
        hosted = any(each.device == "cpu" and each.span for each in tensors(plan.node))
        ahead = ahead and not hosted
        self._prepare(plan.node, value)

        def reveal() -> None:
            self.arena.write(plan.node, value)
            self.buffers.reveal()

        order = Order(operation=operation, value=plan.node, output=self.wanted, ahead=ahead)
        patience_s = PATIENCE_S if ahead else deadline.remaining
        crossing = Crossing(self.gate, patience_s, reveal, self._capture)
        try:
            return self.handle.race(self._packed(order), deadline, crossing)
        except BaseException:
            self.gate.abort()
            raise

    def _settled(self, exchange: Exchange, at_rest: Node | None) -> Exchange:
        """Note where the output lay, for the next call; and whether this one captured it."""
        places = exchange.reply.output and self._in_memory(exchange.reply.output)
        self.copied = places is None or places != self.wanted
        moved = self.copied and self.wanted != at_rest
        self.landed = places if self.ahead else None
        return replace(exchange, moved=moved)

    def _in_memory(self, output: Node) -> Node | None:
        """The places of an output that lies wholly in the shared memory; None when it does not."""
        found = self.buffers.memory
        if isinstance(found, HostBuffer):
            return None

        def place(node: TensorNode) -> TensorNode:
            offset = node.address - self.device_base
            if node.device != "cuda" or not 0 <= offset <= found.size - node.reach:
                raise UnreadableError("elsewhere")
            if offset % node.itemsize:
                raise UnreadableError("askew")
            return node.model_copy(update={"offset": offset, "address": 0})

        try:
            return replaced(output, place)
        except (UnreadableError, KeyError):  # a type without a name has no size
            return None

    @override
    def slowed_by(self) -> tuple[str, ...]:
        return first_gpu().slowed_by()

    @override
    def rehearse(self, call: Callable[[], Exchange]) -> None:
        self.ahead, self.copies = True, False
        for _ in range(REHEARSALS):
            exchange = call()
            if exchange.late:
                self.ahead, self.landed, self.copies = False, None, True
                return
        self.copies = self.copied

    @override
    def demote(self, exchange: Exchange) -> None:
        self.ahead = self.ahead and not exchange.late
        self.landed, self.copies = None, True

    def _at_landing(self, expected: Node) -> Node:
        """The structure in the room for copied outputs."""

        def shifted(node: TensorNode) -> TensorNode:
            if node.device != "cuda":
                return node
            offset = (node.offset or 0) + self.buffers.output_at
            return node.model_copy(update={"offset": offset})

        return replaced(expected, shifted)

    def _discover(self, plan: Plan, value: object, deadline: Deadline) -> Node:
        """Without a reference output, one untimed call tells the structure of this one."""
        self.wanted = None
        exchange = self._cross(Operation.RUN, plan, value, deadline, ahead=False)
        if exchange.reply.output is None:
            raise Ruling(Verdict.DISALLOWED, "the candidate described no output")
        try:
            wanted = replan(exchange.reply.output)
            encode(Order(operation=Operation.PROFILE, value=plan.node, output=wanted))
        except (UnreadableError, UndescribableError, ValueError, RuntimeError) as error:
            raise Ruling(Verdict.WRONG_ANSWER, str(error)) from error
        if device_bytes(wanted) > self.buffers.pool_at - self.buffers.output_at:
            raise Ruling(Verdict.WRONG_ANSWER, "the output is larger than this task allows")
        self.discovered = wanted
        return wanted

    def _prepare(self, node: Node, value: object) -> None:
        for place, tensor in zip(tensors(node), leaves(value), strict=True):
            if place.device == "cuda":
                typed_view(self.buffers.staging, place).copy_(tensor)
        if self.wanted != self.of:
            nodes = on_device(self.wanted) if self.wanted is not None else []
            self.snapshots = [
                torch.empty(each.reach, dtype=torch.uint8, device="cuda") for each in nodes
            ]
            self.of = self.wanted
            self._capture()  # loads what it is made of
        for there in self._places():
            there.fill_(POISON)
        torch.cuda.synchronize()

    def _places(self) -> Iterator[torch.Tensor]:
        """The bytes of every output, where it is wanted."""
        for each in on_device(self.wanted) if self.wanted is not None else []:
            offset = each.offset or 0
            yield self.buffers.memory.bytes[offset : offset + each.reach]

    def _capture(self) -> None:
        for snapshot, there in zip(self.snapshots, self._places(), strict=True):
            snapshot.copy_(there)

    @override
    def fetch(self, reply: Reply, expected: Node | None, deadline: Deadline) -> Any:
        if self.wanted is None:
            raise Ruling(Verdict.DISALLOWED, "the candidate described no output")
        self._captured = iter(self.snapshots)
        self._places_wanted = iter(tensors(self.wanted))
        return super().fetch(reply, self.wanted, deadline)

    @override
    def _read(self, node: TensorNode, room: int) -> torch.Tensor:
        place = next(self._places_wanted)  # of the same structure, else it would not be read
        if node.device == "cpu":
            return self.handle.process.read(node, room)
        return typed_view(next(self._captured), place.model_copy(update={"offset": 0}))

    @override
    def refuse_changes(self, data: object, reply: Reply) -> None:
        if reply.output is None or isinstance(self.buffers.memory, HostBuffer):
            return  # from pinned memory the kernel got a copy of its own
        plan = lay_out(data)
        found = [typed_view(self.buffers.memory.bytes, each) for each in on_device(plan.node)]
        wanted = [typed_view(self.buffers.staging, each) for each in on_device(plan.node)]
        pairs = Changes(on_device(plan.node), found, wanted)
        refuse_changed(pairs, self.device_base, reply.output)


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
def device_start(
    session: Session, room: Plan, expected: Node | None
) -> Iterator[Callable[[], DeviceSeat]]:
    """A fresh candidate on the GPU, which starts; gives what waits for it and seats it."""
    with session.lasting("memory"):
        buffers = Buffers.create(room, expected)
    fds = [buffers.memory.fd, buffers.words.fd]
    shared = DeviceFds(
        transport=buffers.memory.transport,
        size=buffers.memory.size,
        output_at=buffers.output_at,
        pool_at=buffers.pool_at,
        words_size=buffers.words.size,
    )
    session.transport = shared.transport
    try:
        with host_arena(session, room) as arena, enlisted(session, arena, fds, shared) as handle:
            yield lambda: DeviceSeat(session, handle, arena, buffers)
    finally:
        with session.lasting("memory"):
            buffers.close()
