"""A source of one of the five kinds as something that can be called, in the candidate."""

from pathlib import Path
from types import ModuleType

import torch

from runners.contract.io_contract import CALL, KernelCall, KernelKind
from runners.harness.io_contract import cuda_kernel
from runners.harness.io_contract.torch_kernel import TorchKernel
from runners.harness.io_contract.triton_kernel import TritonKernel
from runners.languages import Built, InvalidSubmissionError


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
