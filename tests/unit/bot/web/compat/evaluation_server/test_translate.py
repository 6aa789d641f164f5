"""What a request becomes: the order to a runner, and what is kept of it."""

import json
import time

import pytest

from bot.domain.tasks.task_file import ROUNDS, digest, own_rounds
from bot.web.compat.evaluation_server.requests import (
    CompareRequest,
    EvaluateRequest,
    KernelCode,
    KernelType,
    Request,
    kernels_of,
)
from bot.web.compat.evaluation_server.translate import (
    RECORD,
    TESTS,
    contract_of,
    order_of,
    recorded,
    rounds_of,
    task_of,
    with_record,
)
from runners.contract.io_contract import CALL, CONTRACT, Contract, KernelKind, Role, Side
from runners.contract.io_contract import ContractScalar as Scalar
from runners.contract.io_contract import TensorArgument as Tensor
from runners.contract.task import Device, Mode
from tests.doubles.factories import make_task
from tests.doubles.ioing import (
    ADDING,
    ADDING_INTO,
    MODEL,
    PAIR,
    TRIPLE,
    compare,
    evaluate,
    io,
    kernel,
    scalar,
    tensor,
)


def test_every_kind_of_theirs_is_one_of_the_judges() -> None:
    assert {kind.value for kind in KernelType} == {kind.value for kind in KernelKind}


@pytest.mark.parametrize(
    ("trials", "rounds", "samples"),
    [
        (100, 5, 20),
        (10_000, 5, 2000),
        (97, 7, 14),
        (16, 5, 4),
        (15, 5, 3),
        (10, 2, 5),
        (7, 1, 7),
        (1, 1, 3),
    ],
)
def test_the_rounds_have_as_many_samples_as_are_asked_for(
    trials: int, rounds: int, samples: int
) -> None:
    policy = rounds_of(trials)
    assert (policy.looks, policy.samples) == ((rounds,), samples)


def test_no_number_of_trials_is_undercut_nor_far_exceeded() -> None:
    for trials in range(1, 500):
        found = rounds_of(trials)
        timed = found.looks[0] * found.samples
        assert trials <= timed <= max(3, trials + 4)


def test_arguments_keep_their_order_roles_and_values() -> None:
    fills = tensor("x", shape=[2, 3], dtype="bfloat16", init={"kind": "uniform", "high": 0})
    made = io(
        scalar("BLOCK", 64, is_meta=True), tensor("out", role="output"), fills, scalar("f", 2.0)
    )
    call = contract_of(evaluate(kernel("x", "triton", made))).custom
    block, out, x, f = call.args or ()
    assert block == Scalar(name="BLOCK", value=64, meta=True)
    assert isinstance(out, Tensor)
    assert (out.role, out.fill) == (Role.OUTPUT, None)
    assert isinstance(x, Tensor)
    assert (x.shape, x.dtype) == ((2, 3), "bfloat16")
    assert x.fill is not None
    assert (x.fill.kind, x.fill.high) == ("uniform", 0.0)
    assert f == Scalar(name="f", value=2.0)


def test_a_whole_number_for_a_float_is_passed_as_a_float() -> None:
    whole = io({"name": "f", "type": "float", "value": 2})
    (f,) = contract_of(evaluate(kernel("x", "cuda", whole))).custom.args or ()
    assert isinstance(f, Scalar)
    assert isinstance(f.value, float)


def test_an_input_of_which_nothing_is_said_is_drawn() -> None:
    (x,) = contract_of(evaluate(kernel("x", "cuda", io(tensor("x", init=None))))).custom.args or ()
    assert isinstance(x, Tensor)
    assert x.fill is not None
    assert x.fill.kind == "randn"


def test_literal_values_win_with_their_own_type_and_shape() -> None:
    data = {"data_b64": "AACAPw==", "dtype": "float32", "shape": [1]}
    made = io(tensor("x", shape=[9], dtype="int8", data=data))
    (x,) = contract_of(evaluate(kernel("x", "torch", made))).custom.args or ()
    assert isinstance(x, Tensor)
    assert (x.shape, x.dtype, x.fill) == ((1,), "float32", None)
    assert x.literals is not None
    assert "AACAPw==" not in task_of(evaluate(kernel("x", "torch", made))).files[CALL]


def test_a_launch_has_the_usual_sizes_where_none_are_said() -> None:
    plain = contract_of(evaluate(kernel("x", "cuda", io()))).custom
    assert (plain.grid, plain.block) == ((1, 1, 1), (256, 1, 1))
    said = io(grid={"x": 4, "y": 2}, block={"x": 32}, num_warps=8, num_stages=3)
    call = contract_of(evaluate(kernel("x", "triton", said))).custom
    assert (call.grid, call.block) == ((4, 2, 1), (32, 1, 1))
    assert (call.num_warps, call.num_stages) == (8, 3)


def test_metadata_names_what_is_called_and_how_it_is_compiled() -> None:
    code = kernel(
        "x", "cuda", io(), kernel_name="k", compiler_options=["-DN=1"], name_expressions=["k<1>"],
        backend="nvcc", other=3,
    )  # fmt: skip
    call = contract_of(evaluate(code)).custom
    assert (call.kernel_name, call.options, call.expressions) == ("k", ("-DN=1",), ("k<1>",))
    assert contract_of(evaluate(ADDING_INTO)).custom.entry_point == "go"


def test_a_kernel_without_arguments_is_called_with_the_others() -> None:
    bare = kernel("x", "torch_cuda")
    assert contract_of(compare(bare)).custom.args == contract_of(compare()).reference.call.args  # type: ignore[union-attr]
    found = contract_of(compare(ADDING_INTO, bare))
    assert found.reference is not None
    assert found.reference.call.args == found.custom.args


@pytest.mark.parametrize("ref", [MODEL, "x = 1", "x = ("])
def test_the_judged_kernel_never_chooses_its_inputs(ref: str) -> None:
    """It chose those for which a constant is right, if the reference defined none."""
    request = compare(kernel(MODEL, "torch_cuda"), kernel(ref))
    assert contract_of(request).drawn_by is Side.REFERENCE


def test_no_source_keeps_its_reader_busy() -> None:
    """CPython 3.11 needs 27 s for this one, and lets nothing else run."""
    slow = "x = f'" + "{x}" * 330_000 + "'"
    begin = time.process_time()
    assert contract_of(compare(kernel(slow), kernel(slow))).drawn_by is Side.REFERENCE
    assert time.process_time() - begin < 2


def test_tolerances_are_the_usual_ones_where_none_are_said() -> None:
    found = contract_of(compare(atol=None, rtol=0.0)).reference
    assert found is not None
    assert (found.atol, found.rtol) == (1e-2, 0.0)


def test_a_task_has_public_tests_and_times_both_kernels() -> None:
    task = task_of(compare())
    assert [case.args["seed"] for case in task.tests] == list(range(TESTS))
    assert [case.args["kernel"] for case in task.timed(Mode.RANKED)] == ["reference", "custom"]
    alone = task_of(evaluate())
    assert [case.args["kernel"] for case in alone.timed(Mode.RANKED)] == ["custom"]
    assert alone.mutates_inputs


@pytest.mark.parametrize(
    ("request_", "allowed"),
    [
        (evaluate(), True),
        (compare(), True),
        (compare(ADDING), False),
        (compare(kernel("x", "cuda", TRIPLE)), False),
    ],
)
def test_inputs_may_be_changed_where_it_cannot_be_told_what_is_an_output(
    request_: Request,
    allowed: bool,  # noqa: FBT001
) -> None:
    assert task_of(request_).mutates_inputs is allowed


def test_the_judge_alone_is_told_of_the_reference() -> None:
    task = task_of(compare())
    assert task.shared_files == (CALL,)
    assert "return x + y" not in task.files[CALL]
    assert Contract.model_validate_json(task.files[CONTRACT]) == contract_of(compare())
    assert json.loads(task.files[CALL])["entry_point"] == "go"


@pytest.mark.parametrize("seconds", [None, 5, 17, 600])
def test_all_of_it_ends_before_the_callers_patience(seconds: int | None) -> None:
    task = order_of(compare(timeout=30), seconds=seconds).task
    assert task.limit_s(Mode.RANKED) < (30 if seconds is None else seconds)


@pytest.mark.parametrize(
    ("request_", "device", "file"),
    [
        (evaluate(), Device.ANY, "kernel.py"),
        (evaluate(kernel("x", "cuda", PAIR)), Device.CUDA, "kernel.cu"),
        (compare(ADDING, kernel("x", "triton", TRIPLE)), Device.CUDA, "kernel.py"),
    ],
)
def test_kernels_of_a_gpu_need_one(request_: Request, device: Device, file: str) -> None:
    task = task_of(request_)
    assert (task.device, task.submission_file) == (device, file)


def test_an_order_becomes_a_request_for_a_machine() -> None:
    order = order_of(compare(trials=100))
    made = order.request("r1", "H200")
    assert (made.mode, made.gpu, made.source) == (Mode.RANKED, "H200", ADDING_INTO.source_code)
    assert made.round_policy.samples == 20


def test_the_profiler_counts_where_it_is_asked_to() -> None:
    assert not contract_of(compare()).counted
    for request in (compare(), evaluate()):
        asked = request.model_copy(update={"device_metrics": True})
        assert contract_of(asked).counted
        assert order_of(asked).mode is Mode.RANKED


REF = KernelCode(source_code="class Model: ...", kernel_type=KernelType.TORCH)
OWN = KernelCode(source_code="class ModelNew: ...", kernel_type=KernelType.TORCH_CUDA)
REQUESTS: list[Request] = [
    EvaluateRequest(kernel=OWN, num_trials=7, timeout=33, gpu="H100"),
    CompareRequest(ref_kernel=REF, custom_kernel=OWN, atol=None, rtol=0.5),
]


@pytest.mark.parametrize("request_", REQUESTS)
def test_a_request_is_read_again_without_its_kernels(request_: Request) -> None:
    found = recorded(with_record(task_of(request_), request_))
    types = [each.kernel_type for each in kernels_of(request_)]
    assert [each.kernel_type for each in kernels_of(found)] == types
    assert {each.source_code for each in kernels_of(found)} == {""}
    assert (found.num_trials, found.timeout) == (request_.num_trials, request_.timeout)
    assert type(found) is type(request_)


def test_literal_values_are_kept_once() -> None:
    data = {"data_b64": "AACAPw==", "dtype": "float32", "shape": [1]}
    code = kernel("x = 1", "torch", io(tensor("x", data=data)))
    task = with_record(task_of(evaluate(code)), evaluate(code))
    assert "AACAPw==" in task.files[CONTRACT]
    assert sum("AACAPw==" in text for text in task.files.values()) == 1


@pytest.mark.parametrize("request_", REQUESTS)
def test_no_candidate_sees_the_request(request_: Request) -> None:
    task = with_record(task_of(request_), request_)
    assert RECORD not in task.shared_files
    assert json.loads(task.files[RECORD])["timeout"] == request_.timeout


def test_two_kernels_against_one_reference_have_one_task() -> None:
    asked = REQUESTS[1]
    other = asked.model_copy(
        update={"custom_kernel": OWN.model_copy(update={"source_code": "class ModelNew: pass"})}
    )
    first, second = (digest(with_record(task_of(each), each)) for each in (asked, other))
    assert first == second


def test_a_request_says_how_often_it_is_timed_and_no_other_task_does() -> None:
    task = with_record(task_of(REQUESTS[0]), REQUESTS[0])
    assert own_rounds(task) == rounds_of(7)
    assert own_rounds(make_task()) is None
    assert own_rounds(make_task(files={ROUNDS: "{}"})) is None
