"""Python submissions: Triton and CUDA that is compiled inline are Python too."""

import inspect
import sys
from collections.abc import Callable
from pathlib import Path

from runners.contract.task import TaskFormat
from runners.harness.building import Built, InvalidSubmissionError, Kernel, Recipe
from runners.harness.importing import imported
from runners.harness.model import FUNCTION, ModelKernel


def toolchain() -> str | None:
    """What builds this language here; None where nothing does, so that it is not offered."""
    return f"CPython {sys.version.split()[0]}"


def build(folder: Path, recipe: Recipe) -> Built:
    """Import the submission from `folder` and give its `custom_kernel`, or what calls its model.

    Whatever the import raises passes through: it is the submission's own failure.
    """
    module = imported(folder, recipe.submission_file)
    named = _model_of if recipe.format is TaskFormat.KERNELBENCH else _kernel_of
    return Built(named(module))


def _model_of(module: object) -> Kernel:
    model_class = getattr(module, "ModelNew", None)
    function = getattr(module, FUNCTION, None)
    if model_class is None and callable(function):
        return ModelKernel(lambda *_: function)
    if not callable(model_class):
        raise InvalidSubmissionError(
            "there is no `ModelNew`; define `class ModelNew(nn.Module): ...`,"
            " or `def forward(x): ...`"
        )
    return ModelKernel(model_class)


def _kernel_of(module: object) -> Kernel:
    kernel = getattr(module, "custom_kernel", None)
    if kernel is None:
        raise InvalidSubmissionError(
            "there is no `custom_kernel`; define `def custom_kernel(data): ...`"
        )
    if not callable(kernel):
        raise InvalidSubmissionError("`custom_kernel` is not a function")
    _check_signature(kernel)
    return kernel  # type: ignore[no-any-return]


def _check_signature(kernel: Callable[..., object]) -> None:
    try:
        signature = inspect.signature(kernel)
    except (TypeError, ValueError):
        return  # compiled callables may have no signature; calling them will tell
    try:
        signature.bind(object())
    except TypeError as error:
        raise InvalidSubmissionError(
            f"`custom_kernel{signature}` cannot be called with one argument, the input data"
        ) from error
