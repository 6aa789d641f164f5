"""What is kept of a request, and that no candidate is shown it."""

import json

import pytest

from bot.domain.task_file import digest
from bot.frontends.web.compat.evaluation_server.record import (
    RECORD,
    recorded,
    rounds_asked,
    with_record,
)
from bot.frontends.web.compat.evaluation_server.requests import (
    CompareRequest,
    EvaluateRequest,
    KernelCode,
    KernelType,
    Request,
    kernels_of,
)
from bot.frontends.web.compat.evaluation_server.translate import rounds_of, task_of
from runners.contract.io_contract import CONTRACT
from tests.doubles.factories import make_task
from tests.doubles.ioing import evaluate, io, kernel, tensor

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
    assert rounds_asked(task) == rounds_of(7)
    assert rounds_asked(make_task()) is None
    assert rounds_asked(make_task(files={RECORD: "{}"})) is None
