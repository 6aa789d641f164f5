"""The answer of one call on a GPU: poisoned before, the judge's own when its window closes.

What lies on the GPU is captured by the judge's queue. What lies on the host (a scalar, a host
tensor) the candidate's last frame tells, and the judge copies it before it lets the window close.
Nothing is read later.
"""

from collections.abc import Iterator

import torch

from runners.contract.verdict import Verdict
from runners.harness.gpu.buffers import Buffers, device_bytes, on_device
from runners.harness.gpu.memory import typed_view
from runners.harness.judge.difference import by_key, difference, like
from runners.harness.judge.integrity import same
from runners.harness.protocol.values import (
    DTYPES,
    Fetch,
    Node,
    TensorNode,
    on_host,
    replaced,
    tensors,
    told_by_host,
)
from runners.harness.verdicts import VerdictError

POISON = 0xFF
"""Fills every output byte before a call: NaN in floating types, never a right answer by luck."""


class Answer:
    """Where the answer to the present call is looked for, and the judge's copy of it."""

    def __init__(self, buffers: Buffers, base: int, *, remote: bool) -> None:
        """`base` is where the candidate sees the shared memory, `remote` when it is on the host."""
        self.buffers = buffers
        self.base = base
        self.remote = remote
        size = buffers.pool_at - buffers.output_at
        self.captured = torch.empty(size, dtype=torch.uint8, device="cuda")
        self.captured.fill_(POISON)  # loads that kernel: nothing can be while a stream waits
        self.room: Node | None = None
        """A right answer's structure, each of its tensors in the room into which it is copied."""
        self.wanted: Node | None = None
        """The same, where its tensors lie."""
        self.taken: list[torch.Tensor] = []
        """Its host tensors."""

    def expect(self, expected: Node | None) -> None:
        """Forget the last answer; from now on one of this structure is wanted, if it is known."""
        self.wanted = None
        self.taken = []
        self.room = None if expected is None else replaced(expected, self._shifted)
        if self.room is not None and device_bytes(self.room) > self.buffers.pool_at:
            words = "the output of ref_kernel takes more than twice its input and 64 MiB"
            raise VerdictError(Verdict.TASK_ERROR, words)

    def _shifted(self, node: TensorNode) -> TensorNode:
        if node.device != "cuda":
            return node
        offset = (node.offset or 0) + self.buffers.output_at
        return node.model_copy(update={"offset": offset})

    @property
    def outputs(self) -> tuple[TensorNode, ...]:
        """The rooms of its tensors, as the reference has them in order."""
        return () if self.room is None else tensors(self.room)

    @property
    def rooms(self) -> tuple[TensorNode, ...]:
        """The same in the order of their keys: a kernel may fill a dict in an order of its own."""
        return () if self.room is None else tensors(by_key(self.room))

    @property
    def told(self) -> bool:
        """Whether a part of it travels in the last frame, or in memory which that names."""
        return self.room is not None and told_by_host(self.room)

    def places(self, output: Node | None) -> Node | None:
        """Where an output lies in the shared memory; VerdictError if it does not fit its room."""
        described = self._alike(output)
        if self.remote:
            return self.room
        rooms = iter(self.outputs)

        def place(node: TensorNode) -> TensorNode:
            own, offset = next(rooms), node.address - self.base
            if node.device != "cuda" or not node.span:  # nothing of that is to be captured
                return node
            within = 0 <= offset <= self.buffers.memory.size - node.reach
            if not within or offset % node.itemsize or node.reach > own.reach:
                raise VerdictError(
                    Verdict.DISALLOWED, "the output does not lie where it can be seen"
                )
            return node.model_copy(update={"offset": offset, "address": 0})

        return replaced(described, place)

    def _alike(self, output: Node | None) -> Node:
        """The output in the order of a right one; VerdictError when it is described otherwise."""
        if output is None or self.room is None:
            raise VerdictError(Verdict.DISALLOWED, "the candidate described no output")
        wrong = difference(self.room, output)
        if wrong:
            raise VerdictError(Verdict.WRONG_ANSWER, wrong)
        return like(self.room, output)

    def aim(self, places: Node | None) -> None:
        """From now on the output is looked for there, and nothing right lies there by chance."""
        self.wanted = places
        for _, there in self._pairs():
            there.fill_(POISON)

    def _pairs(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """The bytes of every output on the GPU: the judge's own, and where they are wanted."""
        if self.wanted is None or self.room is None:
            return
        for place, room in zip(on_device(self.wanted), on_device(self.room), strict=True):
            own, there = (room.offset or 0) - self.buffers.output_at, place.offset or 0
            yield (
                self.captured[own : own + place.reach],
                self.buffers.memory.bytes[there : there + place.reach],
            )

    def capture(self) -> None:
        """Copy what lies on the GPU; queued."""
        for own, there in self._pairs():
            own.copy_(there)

    def take(self, output: Node | None, read: Fetch, *, trusted: bool) -> None:
        """Copy what lies on the host, by the last frame.

        The trusted stand-in gives tensors alone, whatever a right answer holds besides them.
        """
        told = output if trusted else self._alike(output)
        if told is not None:
            self.taken = [read(node) for node in tensors(told) if on_host(node)]

    def confirmed(self, output: Node) -> list[TensorNode]:
        """The tensors on the GPU which lie where an output says: the judge's copy is the same."""
        if self.wanted is None:
            return []
        read = self.reader()
        pairs = [(node, read(node)) for node in tensors(like(self.wanted, output))]
        return [node for node, own in pairs if node.device == "cuda" and self._lies(node, own)]

    def _lies(self, node: TensorNode, own: torch.Tensor) -> bool:
        offset = node.address - self.base
        if not 0 <= offset <= self.buffers.memory.size - node.reach or offset % node.itemsize:
            return False
        there = node.model_copy(update={"offset": offset})
        return same(typed_view(self.buffers.memory.bytes, there), own)

    def reader(self) -> Fetch:
        """Gives the judge's copies, one tensor after the other."""
        captured = (own for own, _ in self._pairs())
        taken = iter(self.taken)
        places = iter(() if self.wanted is None else tensors(self.wanted))

        def read(node: TensorNode) -> torch.Tensor:
            place = next(places)  # of the same structure, else it would not be read
            if node.device == "cuda":
                return typed_view(next(captured), place.model_copy(update={"offset": 0}))
            return next(taken) if node.span else torch.empty(node.shape, dtype=DTYPES[node.dtype])

        return read
