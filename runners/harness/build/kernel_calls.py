"""What a kernel is called with and which tensors are its output: arguments, matched or guessed.

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

MOST_TRIED = 20
"""The most shapes that are tried."""
_BATCH, _LENGTH, _ROWS = 16, 128, 1024
_SIDES = ((64, 64), (32, 32), (28, 28), (224, 224))
_WIDTHS = (1024, 512, 256, 768, 128, 64)


@dataclass(frozen=True, slots=True)
class Guess:
    """The shape of a tensor of floats, or of integers from 0 to `below` - 1, for an embedding."""

    shape: tuple[int, ...]
    below: int | None = None

    def drawn(self) -> torch.Tensor:
        """A random tensor on the default device, from torch's global generators."""
        if self.below is None:
            return torch.randn(self.shape)
        return torch.randint(self.below, self.shape)


def tensors_taken(function: Callable[..., object], *, own: int = 0) -> int:
    """Return how many tensors a call requires, without the first `own` parameters.

    InvalidSubmissionError if a required parameter cannot be a tensor.
    """
    parameters = list(inspect.signature(function).parameters.values())[own:]
    needed = [each for each in parameters if not _is_optional(each)]
    for each in needed:
        annotation = each.annotation
        if not (annotation is inspect.Parameter.empty or "Tensor" in str(annotation)):
            raise InvalidSubmissionError(
                f"nothing tells what `{each.name}` is to be: define get_inputs, or give io with"
                " the arguments of the call"
            )
    return len(needed)


def _is_optional(parameter: inspect.Parameter) -> bool:
    star = parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return star or parameter.default is not inspect.Parameter.empty


def guesses(model: object) -> tuple[Guess, ...]:
    """Return `MOST_TRIED` shapes: those for the first layer with a size, then common ones."""
    found = dict.fromkeys((*_by_layer(model), *_common_shapes()))
    return tuple(islice(found, MOST_TRIED))


def fitting(found: Sequence[Guess], call: Callable[[Guess], object]) -> Guess:
    """Return the first guess for which `call` succeeds; without one raise the first error."""
    first: Exception | None = None
    for guess in found:
        try:
            call(guess)
        except Exception as error:  # noqa: BLE001 - submitted code may raise anything
            first = first or error
            continue
        return guess
    raise _with_remedy(first or ValueError("there is no shape to try"), found)


def _with_remedy(error: Exception, found: Sequence[Guess]) -> Exception:
    shapes = ", ".join(str(list(guess.shape)) for guess in found)
    error.add_note(
        f"None of {len(found)} shapes can be called: {shapes}. Define get_inputs, or give io with"
        " the arguments of the call."
    )
    return error


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
        elif words := _size_of(layer, "num_embeddings"):
            yield Guess((_BATCH, _LENGTH), below=words)
        else:
            continue
        return


def _size_of(layer: torch.nn.Module, name: str) -> int:
    """A layer's attribute if it is a positive integer, otherwise 0."""
    found = getattr(layer, name, None)
    return found if isinstance(found, int) and found > 0 else 0


def _images(channels: int, kernel_size: object) -> Iterator[Guess]:
    """Shapes for a convolution, by the number of dimensions of its kernel."""
    dimensions = len(kernel_size) if isinstance(kernel_size, tuple) else 2
    if dimensions == 1:
        yield Guess((_BATCH, channels, _ROWS))
    elif dimensions == 2:
        for sides in _SIDES:
            yield Guess((_BATCH, channels, *sides))
    else:
        yield Guess((4, channels, *(16,) * dimensions))


def _common_shapes() -> Iterator[Guess]:
    for width in _WIDTHS:
        yield Guess((_ROWS, width))
        yield Guess((_LENGTH, _BATCH, width))
    yield Guess((_ROWS,))
    for channels in (3, 1):
        yield Guess((_BATCH, channels, *_SIDES[0]))
        yield Guess((_BATCH, channels, *_SIDES[-1]))
    yield Guess((1,))


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
