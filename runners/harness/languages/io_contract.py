"""Kernels that are called by an IOContract: Python, save those of kind `cuda`."""

import sys
from pathlib import Path

import torch

from runners.contract.io_contract import KernelKind
from runners.harness.building import Built, Recipe
from runners.harness.importing import imported
from runners.harness.io_contract.kernels import build_cuda, build_python, call_in


def toolchain() -> str | None:
    """What builds them here; what else a kind needs is asked for when it is built."""
    return f"CPython {sys.version.split()[0]}"


def build(folder: Path, recipe: Recipe) -> Built:
    """The kernel of the source in `folder`, as the call beside it says.

    Python has `torch` and `nn` there already, as the evaluation server's own examples count on.
    """
    call = call_in(folder)
    if call.kind is KernelKind.CUDA:
        return build_cuda(folder, recipe.submission_file, call)
    module = imported(folder, recipe.submission_file, torch=torch, nn=torch.nn)
    return build_python(module, call)
