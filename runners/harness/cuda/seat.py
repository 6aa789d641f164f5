"""A candidate at work on the GPU: judge-owned device buffers, flushed and poisoned by the judge."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from typing_extensions import override

from runners.contract.verdict import Verdict
from runners.harness.arena import Arena, Layout, Plan, lay_out
from runners.harness.channel import DeviceFds, Operation, Order, Reply, encode
from runners.harness.cuda.buffers import Buffers, device_bytes, on_device
from runners.harness.cuda.driver import typed_view
from runners.harness.cuda.gate import Crossing, Gate
from runners.harness.cuda.pinned import HostBuffer
from runners.harness.cuda.readings import first_gpu
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
    difference,
    leaves,
    replaced,
    restore,
    tensors,
)

POISON = 0xFF
"""Fills every output byte before a call: NaN in floating types, never a right answer by luck."""
PATIENCE_S = 0.1
"""How long a candidate may take to queue its call; who waits for the GPU in it takes for ever."""
REHEARSALS = 2
"""Untimed calls ahead of their input: the first one shows where the output lies, the second one
whether it lies there again."""


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
        # A kernel may need what of its input lies on the host; who stands in for one does not.
        too_soon = not trusted and self.ahead and _partly_hosted(plan.node)
        ahead = trusted or (self.ahead and not too_soon)
        exchange = self._cross(operation, plan, value, deadline, ahead=ahead)
        if trusted:
            return exchange
        return self._settled(replace(exchange, late=exchange.late or too_soon), at_rest)

    def _cross(
        self, operation: Operation, plan: Plan, value: object, deadline: Deadline, *, ahead: bool
    ) -> Exchange:
        """One order through the gate."""
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
        self.buffers.refuse_hoard()
        places = self._landing(exchange.reply.output, at_rest)
        self.copied = places is None or places != self.wanted
        moved = self.copied and self.wanted != at_rest
        self.landed = places if self.ahead else None
        return replace(exchange, moved=moved)

    def _landing(self, output: Node | None, at_rest: Node | None) -> Node | None:
        """Where the next output can be captured without a copy; None when only a copy will do.

        Nothing else may be told by it than where: the structure is the right one, and all of it
        together is no more than a copy.
        """
        places = output and self._in_memory(output)
        if places is None or at_rest is None or difference(at_rest, places):
            return None
        room = self.buffers.pool_at - self.buffers.output_at
        return places if sum(each.reach for each in on_device(places)) <= room else None

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

    @property
    @override
    def claims_count(self) -> bool:
        """Who copies its output could leave that out and work in its stead.

        So its copy counts as its time, save where there is no other way.
        """
        return self.ahead and (not self.copies or self._remote)

    @property
    @override
    def copies_count(self) -> bool:
        return self.ahead and self._remote

    @property
    def _remote(self) -> bool:
        return isinstance(self.buffers.memory, HostBuffer)

    @override
    def build(self, deadline: Deadline) -> None:
        super().build(deadline)
        self.buffers.refuse_hoard()

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


def _partly_hosted(node: Node) -> bool:
    return any(each.device == "cpu" and each.span for each in tensors(node))


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
