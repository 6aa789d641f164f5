"""Kernels that are called by an IOContract: Python, save those of kind `cuda`."""

from pathlib import Path

import torch

from runners.contract.io_contract import KernelKind
from runners.harness.importing import imported
from runners.harness.io_contract.kernels import build_cuda, build_python, call_in
from runners.languages import Built, Recipe


def build(folder: Path, recipe: Recipe) -> Built:
    """The kernel of the source in `folder`, as the call beside it says.

    Python has `torch` and `nn` there already, as the evaluation server's own examples count on.
    """
    call = call_in(folder)
    if call.kind is KernelKind.CUDA:
        return build_cuda(folder, recipe.submission_file, call)
    module = imported(folder, recipe.submission_file, torch=torch, nn=torch.nn)
    return build_python(module, call)
