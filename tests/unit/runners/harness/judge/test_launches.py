"""The judge works out every launch before a submission of device code runs."""

import pytest

from runners.contract.launch import LaunchNumbers
from runners.contract.parameters import BufferArgument
from runners.contract.task import Launch, TaskDefinition
from runners.contract.verdict import Stage, Verdict
from runners.harness.judge.launches import launching_of, refuse_unfit
from runners.harness.protocol.values import DictNode, Node, ScalarNode, SequenceNode, TensorNode
from runners.harness.verdicts import VerdictError
from tests.doubles.judging import make_sort_task

LAUNCH = Launch(
    kernel="k", params=("in0", "out0", "size"), grid=("size // block_x + 1",), block=(128,)
)
TENSOR = TensorNode(dtype="float32", shape=(3,), stride=(1,), offset=0, device="cuda")


def code_task(**changes: object) -> TaskDefinition:
    return make_sort_task(lang="cu", launch=LAUNCH.model_copy(update=changes))


def ruling_of(task: TaskDefinition, source: str = "") -> VerdictError:
    with pytest.raises(VerdictError) as caught:
        launching_of(task, source)
    return caught.value


def test_a_task_without_a_launch_has_none() -> None:
    assert launching_of(make_sort_task(), "//!PODIUM block 0\n") is None


def test_every_case_has_its_launch_as_the_heading_wants_it() -> None:
    task = code_task()

    plain, changed = launching_of(task, ""), launching_of(task, "//!PODIUM block 64\n")

    assert plain is not None
    assert changed is not None
    case = task.benchmarks[0]
    assert (plain.of(case).grid, plain.of(case).block) == ((157, 1, 1), (128, 1, 1))
    assert (changed.of(case).grid, changed.of(case).block) == ((313, 1, 1), (64, 1, 1))
    assert plain.of(task.tests[0]).grid == (1, 1, 1)
    assert plain.signature == changed.signature
    assert plain.signature.text == "k(in0, out0, size)"


def test_a_wrong_heading_is_the_submissions_fault_and_may_be_told() -> None:
    ruling = ruling_of(code_task(), "//\n//!PODIUM block 2*size\n")

    assert (ruling.verdict, ruling.stage) == (Verdict.INVALID_SUBMISSION, Stage.BUILD)
    assert ruling.message.startswith("line 2 of the header: block: '2*size' is 40000")


def test_a_task_that_fails_only_with_a_heading_is_the_headings_fault() -> None:
    task = code_task(grid=("128 // block_x",))

    assert ruling_of(task, "//!PODIUM block 256\n").verdict is Verdict.INVALID_SUBMISSION
    assert launching_of(task, "") is not None


def test_a_wrong_launch_is_the_tasks_fault_whatever_the_heading_says() -> None:
    ruling = ruling_of(code_task(block=("rows",)), "//!PODIUM block 64\n")

    assert ruling.verdict is Verdict.TASK_ERROR
    assert "the task's launch.block: 'rows' is no argument" in ruling.message


def numbers(*arguments: str) -> LaunchNumbers:
    found = tuple(
        BufferArgument(kind="in" if name.startswith("in") else "out", index=int(name[-1]))
        for name in arguments
    )
    return LaunchNumbers(grid=(1, 1, 1), block=(1, 1, 1), arguments=found)


def both(*items: Node) -> SequenceNode:
    return SequenceNode(kind="tuple", items=items)


@pytest.mark.parametrize(
    "expected", [TENSOR, both(TENSOR), DictNode(items=(("x", both(TENSOR)),))], ids=str
)
def test_a_launch_that_fits_is_taken(expected: Node) -> None:
    refuse_unfit(numbers("in1", "out0"), [TENSOR, TENSOR], expected)


@pytest.mark.parametrize(
    ("launch", "expected", "words"),
    [
        (numbers("in2", "out0"), TENSOR, "names in2, but there are 2 tensors"),
        (numbers("out1", "out0"), TENSOR, "names out1, but there are 1 tensors"),
        (numbers("out0"), both(TENSOR, TENSOR), "names no out1"),
        (numbers("in1", "out0"), TENSOR, "names in1, which is not on the GPU"),
        (numbers("out0"), both(TENSOR, ScalarNode(value=3)), "has another value"),
        (numbers("out0"), None, "needs a `ref_kernel`"),
    ],
)
def test_a_launch_that_does_not_fit_blames_the_task(
    launch: LaunchNumbers, expected: Node | None, words: str
) -> None:
    inputs = [TENSOR, TENSOR.model_copy(update={"device": "cpu"})]
    with pytest.raises(VerdictError, match=words) as ruling:
        refuse_unfit(launch, inputs, expected)
    assert ruling.value.verdict is Verdict.TASK_ERROR
