"""Decides which of a contract's arguments a function takes, and which tensors are its output.

This runs in the candidate together with the submission, so nothing here protects the judge.
"""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch

from runners.contract.io_contract import Argument, ContractScalar, Role, TensorArgument
from runners.harness.protocol.values import leaves
from runners.languages import InvalidSubmissionError

NOTHING = "the kernel gave no tensor: return one, or give an argument the role output or inout"
Outputs = tuple[torch.Tensor, ...]


class NoOutputError(Exception):
    """A call produced no output tensor."""


def written(arguments: Sequence[Argument], values: Sequence[Any]) -> Outputs:
    """The tensors of role `output` or `inout`, or all tensors if there are none."""
    pairs = [
        (argument, value)
        for argument, value in zip(arguments, values, strict=True)
        if isinstance(argument, TensorArgument)
    ]
    found = tuple(value for argument, value in pairs if argument.role is not Role.INPUT)
    return some(found or tuple(value for _, value in pairs))


def returned(output: object, arguments: Sequence[Argument], values: Sequence[Any]) -> Outputs:
    """The tensors that a function returned; if none, those of role `output` or `inout`."""
    found = leaves(output)
    if found:
        return found
    declared = any(
        isinstance(each, TensorArgument) and each.role is not Role.INPUT for each in arguments
    )
    return written(arguments, values) if declared else some(())


def some(tensors: Outputs) -> Outputs:
    """The same tensors; NoOutputError if there are none."""
    if not tensors:
        raise NoOutputError(NOTHING)
    return tensors


Match = tuple[tuple[int, ...], dict[str, int]]
"""The indices of the arguments passed by position, and of those passed by name."""


def matched(function: Callable[..., Any], arguments: Sequence[Argument]) -> Match:
    """Return how a function is called: by name if the names fit its signature, else by position.

    By position it gets the first of these lists that fits: all arguments; all except outputs; all
    except outputs and compile-time constants. InvalidSubmissionError if none fits.
    """
    everything = tuple(range(len(arguments)))
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return everything, {}  # no signature to check
    named = _by_name(signature, arguments)
    if named is not None:
        return (), named
    read = tuple(place for place in everything if not _is_output(arguments[place]))
    plain = tuple(place for place in read if not _is_meta(arguments[place]))
    for places in (everything, read, plain):
        if _fits(signature, len(places)):
            return places, {}
    names = ", ".join(argument.name for argument in arguments)
    raise InvalidSubmissionError(
        f"`{getattr(function, '__name__', 'the kernel')}{signature}` cannot be called with the"
        f" arguments of io: {names}"
    )


def _by_name(signature: inspect.Signature, arguments: Sequence[Argument]) -> dict[str, int] | None:
    """Parameter name -> index of its argument; None if the names do not fit."""
    places = {argument.name: place for place, argument in enumerate(arguments)}
    plain = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = signature.parameters.values()
    if not parameters or any(each.kind not in plain for each in parameters):
        return None
    needed = {each.name for each in parameters if each.default is inspect.Parameter.empty}
    needed |= {argument.name for argument in arguments if not _is_output(argument)}
    if needed - places.keys() or needed - {each.name for each in parameters}:
        return None
    return {each.name: places[each.name] for each in parameters if each.name in places}


def _is_output(argument: Argument) -> bool:
    return isinstance(argument, TensorArgument) and argument.role is Role.OUTPUT


def _is_meta(argument: Argument) -> bool:
    return isinstance(argument, ContractScalar) and argument.meta


def _fits(signature: inspect.Signature, count: int) -> bool:
    try:
        signature.bind(*range(count))
    except TypeError:
        return False
    return True
