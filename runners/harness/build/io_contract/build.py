"""Builds the kernel of an `io_contract` task by its kind."""

from pathlib import Path
from types import ModuleType

import torch

from runners.contract.io_contract import CALL, KernelCall, KernelKind
from runners.harness.build.io_contract import cuda_kernel
from runners.harness.build.io_contract.python_kernels import TorchKernel, TritonKernel
from runners.harness.build.loading import imported
from runners.languages import Built, InvalidSubmissionError, Recipe


def call_in(folder: Path) -> KernelCall:
    """The call of the kernel in a candidate's folder, from `call.json`."""
    return KernelCall.model_validate_json((folder / CALL).read_bytes())


def build_cuda(folder: Path, file_name: str, call: KernelCall) -> Built:
    """Build a CUDA kernel; InvalidSubmissionError on a machine without a GPU."""
    _require_gpu(call.kind)
    return cuda_kernel.build(folder, file_name, call)


def build_python(module: ModuleType, call: KernelCall) -> Built:
    """Build the kernel that a Python module defines, by its kind."""
    if call.kind is KernelKind.TRITON:
        _require_gpu(call.kind)
        return Built(TritonKernel(module, call))
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return Built(TorchKernel(module, call, device))


def _require_gpu(kind: KernelKind) -> None:
    if not torch.cuda.is_available():
        raise InvalidSubmissionError(f"a {kind.value} kernel needs a GPU, and there is none here")


def build(folder: Path, recipe: Recipe) -> Built:
    """Build the source in `folder` for the call in the same folder's `call.json`.

    A Python module has `torch` and `nn` predefined, because the evaluation server's examples rely
    on that.
    """
    call = call_in(folder)
    if call.kind is KernelKind.CUDA:
        return build_cuda(folder, recipe.submission_file, call)
    module = imported(folder, recipe.submission_file, torch=torch, nn=torch.nn)
    return build_python(module, call)
