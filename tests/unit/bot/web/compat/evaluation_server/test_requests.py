"""The evaluation server's requests: their defaults, and what is out of range."""

import pytest
from pydantic import ValidationError

from bot.web.compat.evaluation_server.requests import (
    BadRequestError,
    CompareRequest,
    EvaluateRequest,
    KernelType,
    LegacyRequest,
    kernels_of,
    require_limits,
)

KERNEL = {"source_code": "class Model: ...", "kernel_type": "torch"}


def evaluate(**over: object) -> EvaluateRequest:
    return EvaluateRequest.model_validate({"kernel": KERNEL, **over})


def test_what_a_request_leaves_out_has_its_usual_value() -> None:
    request = CompareRequest.model_validate({"ref_kernel": KERNEL, "custom_kernel": KERNEL})
    assert (request.num_trials, request.timeout) == (100, 120)
    assert (request.atol, request.rtol) == (1e-2, 1e-2)


def test_an_unknown_key_is_refused_in_a_kernel_and_passed_over_elsewhere() -> None:
    assert evaluate(priority="high") == evaluate()
    with pytest.raises(ValidationError, match="Extra inputs"):
        evaluate(kernel={**KERNEL, "language": "cuda"})


@pytest.mark.parametrize("tolerance", [-1e-3, float("inf"), float("nan")])
def test_a_tolerance_that_no_difference_can_have_is_refused(tolerance: float) -> None:
    kernels = {"ref_kernel": KERNEL, "custom_kernel": KERNEL}
    with pytest.raises(ValidationError):
        CompareRequest.model_validate({**kernels, "atol": tolerance})


@pytest.mark.parametrize(
    ("name", "value"), [("num_trials", 0), ("num_trials", 10_001), ("timeout", 4), ("timeout", 601)]
)
def test_a_number_out_of_range_is_refused_with_the_range(name: str, value: int) -> None:
    with pytest.raises(BadRequestError, match=f"{name} must be between") as refused:
        require_limits(evaluate(**{name: value}))
    assert refused.value.details["field"] == name


@pytest.mark.parametrize(
    ("name", "value"), [("num_trials", 1), ("num_trials", 10_000), ("timeout", 5), ("timeout", 600)]
)
def test_the_ends_of_the_range_are_in_it(name: str, value: int) -> None:
    asked = evaluate(**{name: value})
    require_limits(asked)
    assert getattr(asked, name) == value


def test_a_triton_kernel_needs_arguments() -> None:
    request = evaluate(kernel={"source_code": "x", "kernel_type": "triton"})
    with pytest.raises(BadRequestError, match="require io_contract"):
        require_limits(request)


def test_the_older_form_is_a_torch_model_against_an_inline_cuda_one() -> None:
    request = LegacyRequest(ref_code="reference", custom_code="kernel").as_comparison
    assert [(each.source_code, each.kernel_type) for each in kernels_of(request)] == [
        ("reference", KernelType.TORCH),
        ("kernel", KernelType.TORCH_CUDA),
    ]
    assert (request.num_trials, request.timeout) == (100, 30)


def test_a_word_of_the_metadata_is_given_only_where_it_is_text() -> None:
    kernel = evaluate(kernel={**KERNEL, "metadata": {"kernel_name": "add", "jitify": True}}).kernel
    assert (kernel.named("kernel_name"), kernel.named("jitify")) == ("add", None)


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ({"function_name": "f" * 1001}, "function_name has words of at most 1,000 characters"),
        ({"compiler_options": ["-G", "-D" + "x" * 1000]}, "compiler_options has words of at most"),
        ({"name_expressions": ["k<1>"] * 257}, "name_expressions has at most 256 words"),
    ],
)
def test_words_that_nobody_means_are_refused(metadata: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        evaluate(kernel={**KERNEL, "metadata": metadata})
    evaluate(kernel={**KERNEL, "metadata": {"note": metadata}})
