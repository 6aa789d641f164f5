"""Decides which arguments a kernel gets, matched or guessed, and which tensors are its output.

This runs in the candidate together with the submission, so nothing here protects the judge.
"""

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch

from runners.contract.io_contract import Argument, ContractScalar, Role, TensorArgument
from runners.harness.protocol.values import leaves
from runners.languages import InvalidSubmissionError

MAX_GUESSES = 20
"""The most shapes that are tried."""
_BATCH, _LENGTH, _ROWS = 16, 128, 1024
_IMAGE_SIZES = ((64, 64), (32, 32), (28, 28), (224, 224))
_WIDTHS = (1024, 512, 256, 768, 128, 64)


@dataclass(frozen=True, slots=True)
class Guess:
    """The shape of a tensor of floats, or of integers from 0 to `below` - 1, for an embedding."""

    shape: tuple[int, ...]
    below: int | None = None

    def random_tensor(self) -> torch.Tensor:
        """A random tensor on the default device, from torch's global generators."""
        if self.below is None:
            return torch.randn(self.shape)
        return torch.randint(self.below, self.shape)


def required_tensors(function: Callable[..., object], *, skipped: int = 0) -> int:
    """Return how many tensors a call requires, without the first `skipped` parameters.

    InvalidSubmissionError if a required parameter cannot be a tensor.
    """
    parameters = list(inspect.signature(function).parameters.values())[skipped:]
    needed = [parameter for parameter in parameters if not _is_optional(parameter)]
    for parameter in needed:
        annotation = parameter.annotation
        if not (annotation is inspect.Parameter.empty or "Tensor" in str(annotation)):
            raise InvalidSubmissionError(
                f"it is unknown what to pass as `{parameter.name}`: define get_inputs,"
                " or give io with the arguments of the call"
            )
    return len(needed)


def _is_optional(parameter: inspect.Parameter) -> bool:
    variadic = parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return variadic or parameter.default is not inspect.Parameter.empty


def guesses(model: object) -> tuple[Guess, ...]:
    """Up to `MAX_GUESSES` shapes: those for the first layer with a size, then common ones."""
    shapes = dict.fromkeys((*_by_layer(model), *_common_shapes()))
    return tuple(islice(shapes, MAX_GUESSES))


def first_accepted(shapes: Sequence[Guess], call: Callable[[Guess], object]) -> Guess:
    """Return the first guess for which `call` succeeds; if none does, raise the first error."""
    first_error: Exception | None = None
    for guess in shapes:
        try:
            call(guess)
        except Exception as error:  # noqa: BLE001 - submitted code may raise anything
            first_error = first_error or error
            continue
        return guess
    final_error = first_error or ValueError("there is no shape to try")
    tried = ", ".join(str(list(guess.shape)) for guess in shapes)
    final_error.add_note(
        f"The kernel accepts none of {len(shapes)} shapes: {tried}. Define get_inputs, or give"
        " io with the arguments of the call."
    )
    raise final_error


def _by_layer(model: object) -> Iterator[Guess]:
    if not isinstance(model, torch.nn.Module):
        return
    for layer in model.modules():
        if width := _size_of(layer, "embed_dim"):
            yield Guess((_LENGTH, _BATCH, width))
            yield Guess((_ROWS, width))
        elif width := _size_of(layer, "in_features"):
            yield Guess((_ROWS, width))
            yield Guess((_BATCH, _LENGTH, width))
        elif channels := _size_of(layer, "in_channels"):
            yield from _images(channels, getattr(layer, "kernel_size", None))
        elif entries := _size_of(layer, "num_embeddings"):
            yield Guess((_BATCH, _LENGTH), below=entries)
        else:
            continue
        return


def _size_of(layer: torch.nn.Module, name: str) -> int:
    """A layer's attribute if it is a positive integer, otherwise 0."""
    size = getattr(layer, name, None)
    return size if isinstance(size, int) and size > 0 else 0


def _images(channels: int, kernel_size: object) -> Iterator[Guess]:
    """Shapes for a convolution, by the number of dimensions of its kernel."""
    dimensions = len(kernel_size) if isinstance(kernel_size, tuple) else 2
    if dimensions == 1:
        yield Guess((_BATCH, channels, _ROWS))
    elif dimensions == 2:
        for sides in _IMAGE_SIZES:
            yield Guess((_BATCH, channels, *sides))
    else:
        yield Guess((4, channels, *(16,) * dimensions))


def _common_shapes() -> Iterator[Guess]:
    for width in _WIDTHS:
        yield Guess((_ROWS, width))
        yield Guess((_LENGTH, _BATCH, width))
    yield Guess((_ROWS,))
    for channels in (3, 1):
        yield Guess((_BATCH, channels, *_IMAGE_SIZES[0]))
        yield Guess((_BATCH, channels, *_IMAGE_SIZES[-1]))
    yield Guess((1,))


NO_OUTPUT = "the kernel has no output: return a tensor, or give an argument role output or inout"
Outputs = tuple[torch.Tensor, ...]


class NoOutputError(Exception):
    """A call produced no output tensor."""


def written_outputs(arguments: Sequence[Argument], values: Sequence[Any]) -> Outputs:
    """The tensors of role `output` or `inout`, or all tensors if there are none."""
    pairs = [
        (argument, value)
        for argument, value in zip(arguments, values, strict=True)
        if isinstance(argument, TensorArgument)
    ]
    outputs = tuple(value for argument, value in pairs if argument.role is not Role.INPUT)
    return require_outputs(outputs or tuple(value for _, value in pairs))


def returned_outputs(
    output: object, arguments: Sequence[Argument], values: Sequence[Any]
) -> Outputs:
    """The tensors that a function returned or, if none, those of role `output` or `inout`."""
    outputs = leaves(output)
    if outputs:
        return outputs
    has_output = any(
        isinstance(argument, TensorArgument) and argument.role is not Role.INPUT
        for argument in arguments
    )
    return written_outputs(arguments, values) if has_output else require_outputs(())


def require_outputs(tensors: Outputs) -> Outputs:
    """The same tensors; NoOutputError if there are none."""
    if not tensors:
        raise NoOutputError(NO_OUTPUT)
    return tensors


Match = tuple[tuple[int, ...], dict[str, int]]
"""The indices of the arguments passed by position, and of those passed by name."""


def match_arguments(function: Callable[..., Any], arguments: Sequence[Argument]) -> Match:
    """Return how a function is called: by name if the names fit its signature, else by position.

    By position, it gets the first of these lists that its signature accepts: all arguments; all
    except outputs; all except outputs and compile-time constants. InvalidSubmissionError if it
    accepts none.
    """
    all_arguments = tuple(range(len(arguments)))
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return all_arguments, {}  # no signature to check
    named = _by_name(signature, arguments)
    if named is not None:
        return (), named
    without_outputs = tuple(index for index in all_arguments if not _is_output(arguments[index]))
    without_constants = tuple(index for index in without_outputs if not _is_meta(arguments[index]))
    for positions in (all_arguments, without_outputs, without_constants):
        if _fits(signature, len(positions)):
            return positions, {}
    names = ", ".join(argument.name for argument in arguments)
    raise InvalidSubmissionError(
        f"`{getattr(function, '__name__', 'the kernel')}{signature}` cannot be called with the"
        f" arguments of io: {names}"
    )


def _by_name(signature: inspect.Signature, arguments: Sequence[Argument]) -> dict[str, int] | None:
    """Parameter name -> index of its argument; None if the names do not fit."""
    indices = {argument.name: index for index, argument in enumerate(arguments)}
    named_kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = signature.parameters.values()
    if not parameters or any(parameter.kind not in named_kinds for parameter in parameters):
        return None
    needed = {
        parameter.name for parameter in parameters if parameter.default is inspect.Parameter.empty
    }
    needed |= {argument.name for argument in arguments if not _is_output(argument)}
    if needed - indices.keys() or needed - {parameter.name for parameter in parameters}:
        return None
    return {
        parameter.name: indices[parameter.name]
        for parameter in parameters
        if parameter.name in indices
    }


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
