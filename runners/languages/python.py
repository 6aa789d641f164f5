"""Python submissions, including Triton and inline CUDA."""

import inspect
import sys
from collections.abc import Callable
from pathlib import Path

from runners.contract.task import TaskFormat
from runners.languages import BuildKit, Built, InvalidSubmissionError, Kernel, LanguageSpec, Recipe

SPEC = LanguageSpec(
    name="py",
    title="Python",
    suffixes=(".py",),
    comment="#",
    lexer="python",
    config_keys=frozenset({"main"}),
    is_python=True,
    constant_answers=True,
)


def toolchain(kit: BuildKit) -> str | None:  # noqa: ARG001 - Python is here
    """Return the name and version of the interpreter, which every runner has."""
    return f"CPython {sys.version.split()[0]}"


def build(folder: Path, recipe: Recipe, kit: BuildKit) -> Built:
    """Import the submission from `folder`; return its `custom_kernel` or a function of its model.

    Exceptions of the import pass through, because they are the submission's own failure.
    InvalidSubmissionError if the submission does not define what the format requires.
    """
    module = kit.import_file(folder, recipe.submission_file)
    if recipe.format is not TaskFormat.KERNELBENCH:
        return Built(_kernel_of(module))
    kernel = kit.model_kernel(module)
    if kernel is None:
        raise InvalidSubmissionError(
            "there is no `ModelNew`; define `class ModelNew(nn.Module): ...`,"
            " or `def forward(x): ...`"
        )
    return Built(kernel)


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
        return  # a compiled callable may have no signature; a wrong one fails at the first call
    try:
        signature.bind(object())
    except TypeError as error:
        raise InvalidSubmissionError(
            f"`custom_kernel{signature}` cannot be called with one argument, the input data"
        ) from error
