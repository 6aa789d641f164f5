"""A candidate at work on the GPU: judge-owned device buffers, flushed and poisoned by the judge."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from typing_extensions import override

from runners.contract.launch import LaunchNumbers
from runners.contract.verdict import Verdict
from runners.harness.arena import Arena, Plan, lay_out
from runners.harness.channel import DeviceFds, Operation, Order, Reply, Status, encode
from runners.harness.cuda.buffers import Buffers, device_bytes, on_device, replan
from runners.harness.cuda.driver import typed_view
from runners.harness.cuda.gate import Crossing, Gate, Steps
from runners.harness.cuda.guards import Guards
from runners.harness.cuda.pinned import HostBuffer
from runners.harness.cuda.readings import first_gpu
from runners.harness.deadline import Deadline
from runners.harness.exchange import Exchange
from runners.harness.handle import Handle
from runners.harness.integrity import Changes, refuse_changed
from runners.harness.launching import refuse_unfit
from runners.harness.process import UnreadableError
from runners.harness.ruling import Ruling
from runners.harness.seat import Seat, enlisted, host_arena
from runners.harness.session import Session
from runners.harness.values import (
    Node,
    ScalarNode,
    TensorNode,
    UndescribableError,
    difference,
    leaves,
    replaced,
    tensors,
)

POISON = 0xFF
"""Fills every output byte before a call: NaN in floating types, never a right answer by luck."""
PATIENCE_S = 0.1
"""How long a candidate may take to queue its call; who waits for the GPU in it takes for ever."""


class DeviceSeat(Seat):
    """A candidate whose inputs and outputs lie in memory that the judge owns."""

    def __init__(self, session: Session, handle: Handle, arena: Arena, buffers: Buffers) -> None:
        super().__init__(session, handle, arena)
        self.buffers = buffers
        self.gate = Gate(buffers.words)
        self.device_base = handle.welcome.device_address
        self.remote = isinstance(buffers.memory, HostBuffer)
        size = buffers.pool_at - buffers.output_at
        self.captured = torch.empty(size, dtype=torch.uint8, device="cuda")
        self.room: Node | None = None
        self.guards: Guards | None = None
        """Round the inputs and outputs of the call that was ordered last, if it is device code."""
        self.captured.fill_(POISON)  # loads that kernel: nothing can be while a stream waits

    @override
    def call(
        self,
        operation: Operation,
        value: object,
        expected: Node | None,
        deadline: Deadline,
        *,
        launch: LaunchNumbers | None = None,
    ) -> Exchange:
        plan = self._plan(value)
        if plan.device_size > self.buffers.output_at:
            raise Ruling(Verdict.TASK_ERROR, "an input of the task grew between two seeds")
        if operation is Operation.TOUCH:
            return self._cross(self._order(operation, plan, expected, ahead=True), value, deadline)
        if launch is not None:
            refuse_unfit(launch, tensors(plan.node), expected)
        if expected is None:
            expected = self._discover(plan, value, deadline)
        # A kernel may need what of its input lies on the host, so that it cannot be queued ahead.
        held_up = self.ahead and _partly_hosted(plan.node)
        ahead = self.ahead and not held_up
        order = self._order(operation, plan, expected, ahead=ahead, launch=launch)
        exchange = self._cross(order, value, deadline)
        self.buffers.refuse_hoard()
        return replace(exchange, late=exchange.late or held_up)

    def _order(
        self,
        operation: Operation,
        plan: Plan,
        expected: Node | None,
        *,
        ahead: bool,
        launch: LaunchNumbers | None = None,
    ) -> Order:
        """An order whose output has its room; from now on that is where it is looked for."""
        self.room = None if expected is None else self._room(expected)
        rooms = () if self.room is None else tensors(self.room)
        if self.room is not None and device_bytes(self.room) > self.buffers.pool_at:
            words = "the output of ref_kernel takes more than twice its input and 64 MiB"
            raise Ruling(Verdict.TASK_ERROR, words)
        self.guards = None
        if launch is not None and not self.remote:
            self.guards = Guards.round(tensors(plan.node), rooms, self.buffers)
        return Order(operation=operation, value=plan.node, rooms=rooms, ahead=ahead, launch=launch)

    def _cross(self, order: Order, value: object, deadline: Deadline) -> Exchange:
        """One order through the gate; its output is where the candidate says first, if it does."""
        node = order.value or ScalarNode()
        self._stage(node, value)
        told: list[Reply] = []

        def queued(first: Reply | None) -> None:
            if first and order.ahead:
                told.append(first)
            self._aim(self._promised(order, first))

        reveal_host = (lambda: self.arena.write(node, value)) if _partly_hosted(node) else None
        steps = Steps(
            queued=queued,
            sweep=self.buffers.sweep,
            reveal=self.buffers.reveal,
            complete=self.buffers.complete,
            capture=self._capture,
            reveal_host=reveal_host,
        )
        crossing = Crossing(self.gate, PATIENCE_S if order.ahead else deadline.remaining, steps)
        try:
            exchange = self.handle.race(self._packed(order), deadline, crossing)
        except BaseException:
            self.gate.abort()
            raise
        self.buffers.withheld.restore()
        if order.launch is not None:  # it writes into its rooms, whatever is told of that
            told = [Reply(status=Status.DONE, output=self.room)]
        if not told:
            return exchange
        return replace(exchange, reply=exchange.reply.model_copy(update={"output": told[0].output}))

    def _promised(self, order: Order, first: Reply | None) -> Node | None:
        """Where an output is to lie, by the candidate's first frame; None when that is unknown."""
        if first is None:
            return None
        own = order.operation is Operation.TOUCH or order.launch is not None
        if order.ahead and not own:
            return self._places(first.output)
        return self.room

    def _places(self, output: Node | None) -> Node:
        """Where in the shared memory an output will lie; Ruling when it does not fit its room."""
        if output is None or self.room is None:
            raise Ruling(Verdict.DISALLOWED, "the candidate described no output")
        wrong = difference(self.room, output)
        if wrong:
            raise Ruling(Verdict.WRONG_ANSWER, wrong)
        if self.remote:
            return self.room
        rooms = iter(tensors(self.room))

        def place(node: TensorNode) -> TensorNode:
            room, offset = next(rooms), node.address - self.device_base
            if node.device != "cuda" or not node.span:  # nothing of that is to be captured
                return node
            within = 0 <= offset <= self.buffers.memory.size - node.reach
            if not within or offset % node.itemsize or node.reach > room.reach:
                raise Ruling(Verdict.DISALLOWED, "the output does not lie where it can be seen")
            return node.model_copy(update={"offset": offset, "address": 0})

        return replaced(output, place)

    def _aim(self, places: Node | None) -> None:
        """From now on the output is looked for there, and nothing right lies there by chance."""
        self.wanted = places
        for _, there in self._pairs():
            there.fill_(POISON)

    def _pairs(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """The bytes of every output: the judge's own, and where they are wanted."""
        if self.wanted is None or self.room is None:
            return
        for place, room in zip(on_device(self.wanted), on_device(self.room), strict=True):
            own, there = (room.offset or 0) - self.buffers.output_at, place.offset or 0
            yield (
                self.captured[own : own + place.reach],
                self.buffers.memory.bytes[there : there + place.reach],
            )

    def _capture(self) -> None:
        for own, there in self._pairs():
            own.copy_(there)

    @override
    def build(self, deadline: Deadline) -> None:
        super().build(deadline)
        self.buffers.refuse_hoard()

    @override
    def slowed_by(self) -> tuple[str, ...]:
        return first_gpu().slowed_by()

    def _room(self, expected: Node) -> Node:
        """The structure in the room for copied outputs."""

        def shifted(node: TensorNode) -> TensorNode:
            if node.device != "cuda":
                return node
            offset = (node.offset or 0) + self.buffers.output_at
            return node.model_copy(update={"offset": offset})

        return replaced(expected, shifted)

    def _discover(self, plan: Plan, value: object, deadline: Deadline) -> Node:
        """Without a reference output, one untimed call tells the structure of this one."""
        order = self._order(Operation.RUN, plan, None, ahead=False)
        exchange = self._cross(order, value, deadline)
        if exchange.reply.output is None:
            raise Ruling(Verdict.DISALLOWED, "the candidate described no output")
        try:
            wanted = replan(exchange.reply.output)
            rooms = tensors(self._room(wanted))
            encode(Order(operation=Operation.PROFILE, value=plan.node, rooms=rooms))
        except (UnreadableError, UndescribableError, ValueError, RuntimeError) as error:
            raise Ruling(Verdict.WRONG_ANSWER, str(error)) from error
        if device_bytes(wanted) > self.buffers.pool_at - self.buffers.output_at:
            raise Ruling(Verdict.WRONG_ANSWER, "the output is larger than this task allows")
        self.discovered = wanted
        return wanted

    def _stage(self, node: Node, value: object) -> None:
        for place, tensor in zip(tensors(node), leaves(value), strict=True):
            if place.device == "cuda":
                typed_view(self.buffers.staging, place).copy_(tensor)
        if self.guards is not None:
            self.guards.lay(self.buffers.staging, self.buffers.memory.bytes)
        self.buffers.withheld.take([each for each in on_device(node) if each.span])
        torch.cuda.synchronize()

    @override
    def fetch(self, reply: Reply, expected: Node | None, deadline: Deadline) -> Any:
        if self.wanted is None:
            raise Ruling(Verdict.DISALLOWED, "the candidate described no output")
        self._captured = (own for own, _ in self._pairs())
        self._captured_places = iter(tensors(self.wanted))
        return super().fetch(reply, self.wanted, deadline)

    @override
    def _read(self, node: TensorNode, room: int) -> torch.Tensor:
        place = next(self._captured_places)  # of the same structure, else it would not be read
        if node.device == "cpu":
            return self.handle.process.read(node, room)
        return typed_view(next(self._captured), place.model_copy(update={"offset": 0}))

    @override
    def refuse_overruns(self) -> None:
        if self.guards is not None:
            self.guards.refuse_changed(self.buffers.memory.bytes)

    @override
    def refuse_changes(self, data: object, reply: Reply) -> None:
        if reply.output is None or self.remote:
            return  # from pinned memory the kernel got a copy of its own
        plan = lay_out(data)
        found = [typed_view(self.buffers.memory.bytes, each) for each in on_device(plan.node)]
        wanted = [typed_view(self.buffers.staging, each) for each in on_device(plan.node)]
        pairs = Changes(on_device(plan.node), found, wanted)
        refuse_changed(pairs, self.device_base, reply.output)


def _partly_hosted(node: Node) -> bool:
    return any(each.device == "cpu" and each.span for each in tensors(node))


@contextmanager
def device_start(
    session: Session, room: Plan, expected: Node | None
) -> Iterator[Callable[[], DeviceSeat]]:
    """A fresh candidate on the GPU, which starts; gives what waits for it and seats it."""
    with session.lasting("memory"):
        buffers = Buffers.create(room, expected, pooled=session.launching is None)
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
