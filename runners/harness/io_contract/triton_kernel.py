"""A kernel of kind `triton`, in the candidate: one launch with all arguments of the contract.

This runs beside the submission: nothing here protects the judge.
"""

from typing import Any

from runners.contract.io_contract import Argument, KernelCall
from runners.harness.io_contract.outputs import Outputs, written
from runners.languages import InvalidSubmissionError

_MARKS = ("run", "fn", "__getitem__")
"""What Triton's kernels have, tuned ones and plain ones, and hardly anything else."""


class TritonKernel:
    """The named kernel of a module, or its first one."""

    def __init__(self, module: Any, call: KernelCall) -> None:  # noqa: ANN401 - a module
        if call.args is None:
            raise InvalidSubmissionError("a triton kernel needs io with the arguments of its call")
        self.args: tuple[Argument, ...] = call.args
        self.kernel = _found(module, call.kernel_name)
        self.grid = call.grid
        said = {"num_warps": call.num_warps, "num_stages": call.num_stages}
        self.options = {key: value for key, value in said.items() if value is not None}

    def __call__(self, data: dict[str, Any]) -> Outputs:
        """Launch it, and give the tensors that it was to write."""
        values = data["args"]
        self.kernel[self.grid](*values, **self.options)
        return written(self.args, values)


def _found(module: Any, name: str | None) -> Any:  # noqa: ANN401 - Triton's own type
    if name is not None:
        found = getattr(module, name, None)
        if not _is_kernel(found):
            raise InvalidSubmissionError(f"there is no Triton kernel `{name}`")
        return found
    first = next((each for each in vars(module).values() if _is_kernel(each)), None)
    if first is None:
        raise InvalidSubmissionError("there is no Triton kernel: put @triton.jit before a function")
    return first


def _is_kernel(value: object) -> bool:
    return not isinstance(value, type) and all(hasattr(value, mark) for mark in _MARKS)
