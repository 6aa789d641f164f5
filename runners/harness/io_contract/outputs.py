"""What of a call counts as its output, in the candidate: a tuple of tensors, whatever gave them."""

from collections.abc import Sequence
from typing import Any

import torch

from runners.contract.io_contract import Argument, Role, TensorArgument
from runners.harness.values import leaves

NOTHING = "the kernel gave no tensor: return one, or give an argument the role output or inout"
Outputs = tuple[torch.Tensor, ...]


class NoOutputError(Exception):
    """A call gave no tensor that could be looked at."""


def written(arguments: Sequence[Argument], values: Sequence[Any]) -> Outputs:
    """The tensors whose role says that they are written, or all where none does."""
    pairs = [
        (argument, value)
        for argument, value in zip(arguments, values, strict=True)
        if isinstance(argument, TensorArgument)
    ]
    found = tuple(value for argument, value in pairs if argument.role is not Role.INPUT)
    return some(found or tuple(value for _, value in pairs))


def returned(output: object, arguments: Sequence[Argument], values: Sequence[Any]) -> Outputs:
    """The tensors that a function returned, or where it did not, those that it was to write."""
    found = leaves(output)
    if found:
        return found
    declared = any(
        isinstance(each, TensorArgument) and each.role is not Role.INPUT for each in arguments
    )
    return written(arguments, values) if declared else some(())


def some(tensors: Outputs) -> Outputs:
    """The same; NoOutputError where there are none."""
    if not tensors:
        raise NoOutputError(NOTHING)
    return tensors
