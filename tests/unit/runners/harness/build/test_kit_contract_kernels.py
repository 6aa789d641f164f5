from pathlib import Path
from types import ModuleType

import pytest

from runners.contract.io_contract import CALL, KernelCall, KernelKind
from runners.harness.build.kit import build_cuda, build_python, read_call
from runners.languages import InvalidSubmissionError


def test_a_call_is_read_from_its_file(tmp_path: Path) -> None:
    call = KernelCall(kind=KernelKind.TORCH, function_name="f")
    (tmp_path / CALL).write_text(call.model_dump_json(exclude_none=True))
    assert read_call(tmp_path) == call


def test_a_python_kernel_is_what_its_kind_says() -> None:
    module = ModuleType("kernel")
    vars(module)["f"] = lambda x: x
    built = build_python(module, KernelCall(kind=KernelKind.TORCH, function_name="f"))
    assert callable(built.kernel)


def test_kernels_of_a_gpu_are_refused_without_one(tmp_path: Path) -> None:
    with pytest.raises(InvalidSubmissionError, match="a triton kernel needs a GPU"):
        build_python(ModuleType("kernel"), KernelCall(kind=KernelKind.TRITON, args=()))
    with pytest.raises(InvalidSubmissionError, match="a cuda kernel needs a GPU"):
        build_cuda(tmp_path, "kernel.cu", KernelCall(kind=KernelKind.CUDA, args=()))
