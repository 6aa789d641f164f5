"""The launches of a device code submission, which the judge computes before the code runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from runners.contract.launch import LaunchError, LaunchNumbers, LaunchPlan, Signature
from runners.contract.parameters import BufferArgument
from runners.contract.task import TaskDefinition, Workload
from runners.contract.verdict import Stage, Verdict
from runners.harness.protocol.values import DictNode, Node, SequenceNode, TensorNode
from runners.harness.verdicts import VerdictError


@dataclass(frozen=True, slots=True)
class Launching:
    """The signature that a submission must define, and its launch for each case's spec."""

    signature: Signature
    numbers: Mapping[str, LaunchNumbers]

    def of(self, workload: Workload) -> LaunchNumbers:
        """The launch for one case of the task."""
        return self.numbers[workload.spec]


def launching_of(task: TaskDefinition, source: str) -> Launching | None:
    """The launches from the task and the submission's header; None if the task has no `launch`.

    VerdictError if they cannot be computed: `task_error` if the task is wrong without the header,
    otherwise `invalid_submission`.
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
                raise _unfit(f"names {kind}{each.index}, which does not lie on the GPU")
    written = {each.index for each in named if each.kind == "out"}
    left = next((index for index in range(len(outputs)) if index not in written), None)
    if left is not None:
        raise _unfit(f"names no out{left}, so that nothing can be written there")


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
            raise _unfit("needs a `ref_kernel` in reference.py, which tells the output's form")
        case _:
            raise _unfit("can fill tensors alone, but the output of ref_kernel holds a number")
    return tuple(found for part in parts for found in _output_tensors(part))


def _unfit(words: str) -> VerdictError:
    return VerdictError(Verdict.TASK_ERROR, f"the task's launch {words}")
