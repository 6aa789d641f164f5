"""Kernels that an IOContract calls: the builder of each kind."""

from pathlib import Path
from types import ModuleType

import torch

from runners.contract.io_contract import CALL, KernelCall, KernelKind
from runners.harness.build.io_contract import cuda_kernel
from runners.harness.build.io_contract.python_kernels import TorchKernel, TritonKernel
from runners.harness.build.loading import imported
from runners.languages import Built, InvalidSubmissionError, Recipe


def call_in(folder: Path) -> KernelCall:
    """How the kernel in a candidate's folder is called."""
    return KernelCall.model_validate_json((folder / CALL).read_bytes())


def build_cuda(folder: Path, file_name: str, call: KernelCall) -> Built:
    """A CUDA kernel; InvalidSubmissionError on a machine that could not launch it."""
    _require_gpu(call.kind)
    return cuda_kernel.build(folder, file_name, call)


def build_python(module: ModuleType, call: KernelCall) -> Built:
    """What a Python module defines, by its kind."""
    if call.kind is KernelKind.TRITON:
        _require_gpu(call.kind)
        return Built(TritonKernel(module, call))
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return Built(TorchKernel(module, call, device))


def _require_gpu(kind: KernelKind) -> None:
    if not torch.cuda.is_available():
        raise InvalidSubmissionError(f"a {kind.value} kernel needs a GPU, and there is none here")


def build(folder: Path, recipe: Recipe) -> Built:
    """The kernel of the source in `folder`, as the call next to it says.

    Python has `torch` and `nn` there already, as the evaluation server's own examples count on.
    """
    call = call_in(folder)
    if call.kind is KernelKind.CUDA:
        return build_cuda(folder, recipe.submission_file, call)
    module = imported(folder, recipe.submission_file, torch=torch, nn=torch.nn)
    return build_python(module, call)
