"""Device code in the judge: its launches, computed before it runs, and guard bands around buffers.

The bands are known bytes around each input and output, which device code must not change. They are
written and checked outside of the window, in memory that the judge owns.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import torch

from runners.contract.launch import LaunchError, LaunchNumbers, LaunchPlan, Signature
from runners.contract.parameters import BufferArgument
from runners.contract.task import TaskDefinition, Workload
from runners.contract.verdict import Stage, Verdict
from runners.harness.gpu.buffers import Buffers
from runners.harness.protocol.values import DictNode, Node, SequenceNode, TensorNode
from runners.harness.verdicts import VerdictError


@dataclass(frozen=True, slots=True)
class Launching:
    """The signature that a submission must define, and its launch for each case (by `spec`)."""

    signature: Signature
    numbers: Mapping[str, LaunchNumbers]

    def of(self, workload: Workload) -> LaunchNumbers:
        """The launch for one case of the task."""
        return self.numbers[workload.spec]


def launching_of(task: TaskDefinition, source: str) -> Launching | None:
    """The launches from the task and the submission's header; None if the task has no `launch`.

    VerdictError if they cannot be computed: `task_error` if the task's own `launch` is wrong,
    `invalid_submission` if the header is.
    """
    if task.launch is None:
        return None
    cases = (*task.tests, *task.benchmarks)
    try:
        plan = LaunchPlan.of(task.launch)
        signature = plan.signature(cases)
        own = {case.spec: plan.numbers(case) for case in cases}
    except LaunchError as error:
        raise VerdictError(Verdict.TASK_ERROR, f"the task's {error}") from error
    try:
        changed = plan.overridden(source)
        numbers = own if changed == plan else {each.spec: changed.numbers(each) for each in cases}
    except LaunchError as error:
        raise VerdictError(Verdict.INVALID_SUBMISSION, str(error), Stage.BUILD) from error
    return Launching(signature, numbers)


def refuse_unfit(
    launch: LaunchNumbers, inputs: Sequence[TensorNode], expected: Node | None
) -> None:
    """Raise `task_error` if the task's launch does not fit its inputs and outputs."""
    outputs = _output_tensors(expected)
    named = [each for each in launch.arguments if isinstance(each, BufferArgument)]
    for kind, tensors in (("in", inputs), ("out", outputs)):
        for each in named:
            if each.kind == kind and each.index >= len(tensors):
                raise _unfit(f"names {kind}{each.index}, but there are {len(tensors)} tensors")
            if each.kind == kind and tensors[each.index].device != "cuda":
                raise _unfit(f"names {kind}{each.index}, which is not on the GPU")
    written = {each.index for each in named if each.kind == "out"}
    left = next((index for index in range(len(outputs)) if index not in written), None)
    if left is not None:
        raise _unfit(f"names no out{left}, so no kernel can write that output")


def _output_tensors(expected: Node | None) -> tuple[TensorNode, ...]:
    """The tensors of an output; VerdictError if it has other values, which no kernel can write."""
    match expected:
        case TensorNode():
            return (expected,)
        case SequenceNode():
            parts = expected.items
        case DictNode():
            parts = tuple(part for _, part in expected.items)
        case None:
            raise _unfit("needs a `ref_kernel` in reference.py to define the output's structure")
        case _:
            raise _unfit("can only fill tensors, but the output of ref_kernel has another value")
    return tuple(found for part in parts for found in _output_tensors(part))


def _unfit(reason: str) -> VerdictError:
    return VerdictError(Verdict.TASK_ERROR, f"the task's launch {reason}")


GUARD = 0xA5
"""The value of every byte of a band; differs from the poison of outputs."""
BAND = 1 << 20
"""The most bytes of a band on either side of a tensor."""


@dataclass(frozen=True, slots=True)
class GuardedRange:
    """A tensor's bytes in the shared memory, and its name in a launch."""

    name: str
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Band:
    """Bytes after the end of one tensor, before the beginning of another, or both."""

    begin: int
    end: int
    after: GuardedRange | None
    before: GuardedRange | None

    def place(self, offset: int) -> str:
        """The position of one of its bytes relative to the nearer tensor, as a text."""
        behind = None if self.after is None else offset - self.after.end
        ahead = None if self.before is None else self.before.begin - offset
        if behind is not None and (ahead is None or behind < ahead):
            return f"{behind} bytes after the end of {self.after and self.after.name}"
        return f"{ahead} bytes before {self.before and self.before.name}"


def ranges_of(kind: str, nodes: Sequence[TensorNode]) -> Iterator[GuardedRange]:
    """The tensors on the device, with the names that a task's `launch` gives them."""
    for index, node in enumerate(nodes):
        if node.device == "cuda" and node.span:
            begin = node.offset or 0
            yield GuardedRange(f"{kind}{index}", begin, begin + node.reach)


def bands(tensors: Sequence[GuardedRange], size: int) -> tuple[Band, ...]:
    """The bands around tensors in a memory of `size` bytes."""
    ordered = sorted(tensors, key=lambda span: span.begin)
    pairs = zip([None, *ordered], [*ordered, None], strict=True)
    found: list[Band] = []
    for after, before in pairs:
        begin = 0 if after is None else after.end
        end = size if before is None else before.begin
        if end - begin > 2 * BAND:
            found += [Band(begin, begin + BAND, after, None)] if after else []
            found += [Band(end - BAND, end, None, before)] if before else []
        elif end > begin:
            found.append(Band(begin, end, after, before))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Guards:
    """The bands of one call; those around inputs become visible with the input itself."""

    bands: tuple[Band, ...]
    output_at: int

    @classmethod
    def around(
        cls, inputs: Sequence[TensorNode], outputs: Sequence[TensorNode], within: Buffers
    ) -> Self:
        """The bands around these tensors in the shared memory."""
        watched = (*ranges_of("in", inputs), *ranges_of("out", outputs))
        return cls(bands(watched, within.pool_at), within.output_at)

    def write(self, staging: torch.Tensor, memory: torch.Tensor) -> None:
        """Fill every band: around inputs in `staging`, around outputs in the shared `memory`."""
        for band in self.bands:
            staging[band.begin : min(band.end, self.output_at)].fill_(GUARD)
            memory[max(band.begin, self.output_at) : band.end].fill_(GUARD)

    def refuse_changed(self, memory: torch.Tensor) -> None:
        """Raise VerdictError if a byte of a band has changed."""
        parts = [memory[band.begin : band.end] != GUARD for band in self.bands]
        if not parts:
            return
        count = int(torch.cat(parts).count_nonzero())
        if count == 0:
            return
        band, changed = next(
            (band, part) for band, part in zip(self.bands, parts, strict=True) if bool(part.any())
        )
        first = band.begin + int(changed.nonzero()[0])
        raise VerdictError(
            Verdict.WRONG_ANSWER,
            f"the kernel wrote outside of its buffers: {count} bytes near them changed, the first"
            f" {band.place(first)}",
        )
