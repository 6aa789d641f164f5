"""The output of one call on a GPU: its memory is poisoned before the call and copied in the window.

The judge's CUDA stream copies tensors on the GPU. Values on the host (a scalar, a host tensor)
arrive in the candidate's last frame or in memory that the frame names, and the judge copies them
before it closes the window. Nothing is read later.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch

from runners.contract.verdict import Verdict
from runners.harness.gpu.buffers import Buffers, Withheld, device_bytes, on_device, replan
from runners.harness.gpu.memory import typed_view
from runners.harness.judge.capture_times import CaptureTimes
from runners.harness.judge.checks import (
    difference,
    fills_its_span,
    ordered_like,
    refuse_across,
    same,
    sorted_by_key,
)
from runners.harness.judge.poison import POISONS, PoisonedSectors, hidden_poisons, poison
from runners.harness.protocol import values
from runners.harness.protocol.arena import SeparateSpans
from runners.harness.verdicts import VerdictError

TENSORS_MOST = 256
"""The most tensors of an output on a GPU. The judge queues three operations for each while its
stream waits, and beyond about 1,000 queued operations the driver blocks."""


def too_many_tensors(output: values.Node | None) -> str:
    """Say that an output has more than `TENSORS_MOST` tensors on the GPU; "" if it has not."""
    if output is None or (count := len(on_device(output))) <= TENSORS_MOST:
        return ""
    return f"has {count} tensors on the GPU; at most {TENSORS_MOST} are possible"


class Answer:
    """Where the judge expects the output of the current call, and the judge's copy of it."""

    def __init__(self, buffers: Buffers, base: int, *, remote: bool, shift: int = 0) -> None:
        """`base` is the candidate's address of the shared memory; `remote` means host memory.

        `shift` is where the place of this call begins in the shared memory.
        """
        self.buffers = buffers
        self.base = base
        self.remote = remote
        self.output_at = shift + buffers.output_at
        size = buffers.pool_at - buffers.output_at
        self.captured = torch.empty(size, dtype=torch.uint8, device="cuda")
        self.captured.fill_(POISONS[0])  # loads the CUDA kernel, impossible while a stream waits
        self.room: values.Node | None = None
        """The structure of a right output; each tensor's offset is where its room begins."""
        self.wanted: values.Node | None = None
        """The same structure; each tensor's offset is where this output's tensor is."""
        self.told = True
        """Whether the candidate is told the rooms."""
        self.hidden: tuple[int, int] | None = None
        """The poison of all memory for outputs; None if only the output's memory is poisoned."""
        self.sectors: PoisonedSectors | None = None
        """What is poisoned again; None before the place of the output is known."""
        self.taken: list[torch.Tensor] = []
        """The judge's copies of this output's host tensors."""
        self.capture_times: CaptureTimes | None = None
        """The times of copies of outputs by their size; None unless they differ in size."""
        self.usual_capture_ns = 0.0
        """The time of the copy of the calibration kernel's output."""

    def expect(self, expected: values.Node | None, *, told: bool = True) -> None:
        """Discard the last output and expect one of this structure; None if it is unknown.

        If the candidate is not `told` the rooms, they are where it lays out such an output itself.
        VerdictError if it has too many tensors, or if the rooms do not fit into the shared memory.
        """
        self.told = told
        if expected is not None and not told:
            expected = ordered_like(expected, replan(sorted_by_key(expected)))
        self.wanted = self.hidden = None
        self.taken, self.sectors = [], None
        self.room = None if expected is None else values.replaced(expected, self._in_output_part)
        end = self.output_at + self.captured.numel()
        if self.room is not None and device_bytes(self.room) > end:
            message = "the output of ref_kernel takes more than twice its input plus 64 MiB"
            raise VerdictError(Verdict.TASK_ERROR, message)
        if message := too_many_tensors(expected):
            raise VerdictError(Verdict.TASK_ERROR, f"the output of ref_kernel {message}")

    def _in_output_part(self, node: values.TensorNode) -> values.TensorNode:
        if node.device != "cuda":
            return node
        offset = (node.offset or 0) + self.output_at
        return node.model_copy(update={"offset": offset})

    @property
    def rooms_in_expected_order(self) -> tuple[values.TensorNode, ...]:
        """The room of each tensor, in the order of the reference's output."""
        return () if self.room is None else values.tensors(self.room)

    @property
    def rooms(self) -> tuple[values.TensorNode, ...]:
        """The same rooms sorted by dict keys, because a kernel may fill a dict in any order."""
        return () if self.room is None else values.tensors(sorted_by_key(self.room))

    @property
    def has_host_part(self) -> bool:
        """Whether a part of the output arrives in the last frame or in memory that it names."""
        return self.room is not None and values.has_host_part(self.room)

    def places(self, output: values.Node | None) -> values.Node | None:
        """Return the output with offsets in the shared memory; VerdictError if it is not there.

        No elements of tensors may share memory. The copies of such tensors would be shorter than in
        calibration, or their kernel would write less than it returns.
        """
        described, taken = self._in_expected_order(output), SeparateSpans()
        if self.remote:
            return self.room

        def place(node: values.TensorNode) -> values.TensorNode:
            offset = node.address - self.base
            if node.device != "cuda" or not node.span:  # not captured
                return node
            within = 0 <= offset <= self.buffers.memory.size - node.reach
            apart = fills_its_span(node) and taken.add(offset, node.reach)
            if not within or offset % node.itemsize or not apart:
                raise VerdictError(
                    Verdict.DISALLOWED, "the output is not in the memory that the judge reads"
                )
            return node.model_copy(update={"offset": offset, "address": 0})

        return values.replaced(described, place)

    def _in_expected_order(self, output: values.Node | None) -> values.Node:
        """Return the output in the order of a right one; VerdictError if its structure differs."""
        if output is None or self.room is None:
            raise VerdictError(Verdict.DISALLOWED, "the candidate described no output")
        wrong = difference(self.room, output)
        if wrong:
            raise VerdictError(Verdict.WRONG_ANSWER, wrong)
        return ordered_like(self.room, output)

    def expect_at(self, places: values.Node | None) -> None:
        """Expect the output at these places, and poison them.

        An output in an input has bytes that count. Sectors of its room are then poisoned again.
        """
        self.wanted = places
        self.poison()
        inputs = range(self.output_at - self.buffers.output_at, self.output_at)
        found = [
            room if (place.offset or 0) in inputs else place
            for place, room in self._places_and_rooms()
        ]
        self.sectors = PoisonedSectors(self.buffers.memory.bytes, found, self.hidden)
        self.sectors.queue()

    def poison(self) -> None:
        """Queue the poisoning of these places before the window opens; earlier writes are lost.

        If the candidate is not told the rooms, all memory for outputs gets the same poison, so that
        no end of it tells them.
        """
        places = [place for place, _ in self._places_and_rooms()]
        if not self.told and places:
            self.hidden = self.hidden or hidden_poisons()
        if self.hidden:
            whole = self.buffers.memory.bytes[self.output_at :][: self.captured.numel()]
            whole.view(torch.int16).fill_(int.from_bytes(self.hidden, "little", signed=True))
        for place in places:
            poison(self.buffers.memory.bytes, place, self.hidden)

    def poison_again(self) -> None:
        """Queue the poisoning of some sectors, immediately before the candidate's release."""
        if self.sectors is not None:
            self.sectors.queue()

    def _pairs(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Yield the judge's copy and the shared memory of every output on the GPU, as bytes."""
        for place, room in self._places_and_rooms():
            own, there = (room.offset or 0) - self.output_at, place.offset or 0
            yield (
                self.captured[own : own + place.reach],
                self.buffers.memory.bytes[there : there + place.reach],
            )

    def _places_and_rooms(self) -> Iterable[tuple[values.TensorNode, values.TensorNode]]:
        """Return where every output on the GPU is, and its room."""
        if self.wanted is None or self.room is None:
            return ()
        return zip(on_device(self.wanted), on_device(self.room), strict=True)

    def capture(self) -> None:
        """Queue the copies of the outputs on the GPU."""
        for own, there in self._pairs():
            own.copy_(there)

    def time_usual_capture(self) -> None:
        """Learn how long copies take, this output's as the usual one.

        Only for the calibration kernel's output, before any submitted code runs.
        """
        if self.capture_times is None:
            self.capture_times = CaptureTimes.measure(self.buffers, self.captured)
        self.usual_capture_ns = self._capture_ns(self.capture_times)

    def _capture_ns(self, times: CaptureTimes) -> float:
        rooms = () if self.room is None else on_device(self.room)
        return times.total([room.reach for room in rooms if room.reach])

    @property
    def further_capture_ns(self) -> float:
        """By how much the copy of this output takes longer than the usual one, if that is known."""
        times = self.capture_times
        return 0.0 if times is None else self._capture_ns(times) - self.usual_capture_ns

    def refuse_across(self, inputs: Iterable[values.TensorNode], shift: int) -> None:
        """Refuse an output that overlaps the memory of the inputs, but is not within one of them.

        A kernel that extends an input by what follows it moves less than it returns. `shift` is
        where the place of this call begins.
        """
        moved = [
            each.model_copy(update={"offset": shift + (each.offset or 0)})
            for each in inputs
            if each.span
        ]
        for place, _ in self._places_and_rooms():
            begin = place.offset or 0
            output = range(begin, begin + place.reach)
            refuse_across(output, moved, range(shift, self.output_at))

    def take(self, output: values.Node | None, read: values.Fetch, *, trusted: bool) -> None:
        """Copy the outputs on the host, which the last frame describes.

        Trusted code returns only the tensors of a right output, so its structure is not compared.
        """
        node = output if trusted else self._in_expected_order(output)
        if node is not None:
            self.taken = [read(each) for each in values.tensors(node) if values.on_host(each)]

    def confirmed(self, output: values.Node) -> list[values.TensorNode]:
        """Return the tensors on the GPU whose bytes at the places in `output` equal the copies."""
        if self.wanted is None:
            return []
        read = self.reader()
        pairs = [(node, read(node)) for node in values.tensors(ordered_like(self.wanted, output))]
        return [node for node, own in pairs if node.device == "cuda" and self._same_at(node, own)]

    def _same_at(self, node: values.TensorNode, own: torch.Tensor) -> bool:
        offset = node.address - self.base
        if not 0 <= offset <= self.buffers.memory.size - node.reach or offset % node.itemsize:
            return False
        there = node.model_copy(update={"offset": offset})
        return same(typed_view(self.buffers.memory.bytes, there), own)

    def reader(self) -> values.Fetch:
        """Return a function that returns the judge's copies, one tensor at a time.

        VerdictError for truths of which one is still the hidden poison, because any byte is a truth
        for torch.
        """
        captured = (own for own, _ in self._pairs())
        taken = iter(self.taken)
        places = iter(() if self.wanted is None else values.tensors(self.wanted))

        def read(node: values.TensorNode) -> torch.Tensor:
            place = next(places)  # nothing is read unless the structures are equal
            if node.device == "cuda":
                own = next(captured)
                if node.dtype == "bool" and self._has_hidden_poison(own):
                    raise VerdictError(Verdict.WRONG_ANSWER, "some truths were not written")
                return typed_view(own, place.model_copy(update={"offset": 0}))
            return (
                next(taken)
                if node.span
                else torch.empty(node.shape, dtype=values.DTYPES[node.dtype])
            )

        return read

    def _has_hidden_poison(self, own: torch.Tensor) -> bool:
        found = (own[turn::2].eq(byte).any() for turn, byte in enumerate(self.hidden or ()))
        return any(map(bool, found))


@dataclass(frozen=True, slots=True)
class Place:
    """The part of the shared memory that one call uses, and the judge's copies of its contents."""

    shift: int
    """Bytes from the start of the shared memory."""
    answer: Answer
    staging: torch.Tensor
    """The judge's copy of the next input in this place."""
    withheld: Withheld
