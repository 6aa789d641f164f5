"""Inputs for a source that tells none: a shape by its first layer, else one that it takes."""

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import torch

from runners.languages import InvalidSubmissionError

MOST_TRIED = 20
"""Shapes that are tried at most."""
_BATCH, _LENGTH, _ROWS = 16, 128, 1024
_SIDES = ((64, 64), (32, 32), (28, 28), (224, 224))
_WIDTHS = (1024, 512, 256, 768, 128, 64)


@dataclass(frozen=True, slots=True)
class Guess:
    """A shape of floats, or of whole numbers below `below`, as an embedding takes them."""

    shape: tuple[int, ...]
    below: int | None = None

    def drawn(self) -> torch.Tensor:
        """One tensor, on the default device, by the generators as they are seeded."""
        if self.below is None:
            return torch.randn(self.shape)
        return torch.randint(self.below, self.shape)


def tensors_taken(function: Callable[..., object], *, own: int = 0) -> int:
    """How many tensors a call needs, without the first `own` parameters.

    InvalidSubmissionError where a parameter can be no tensor.
    """
    parameters = list(inspect.signature(function).parameters.values())[own:]
    needed = [each for each in parameters if not _can_be_left_out(each)]
    for each in needed:
        told = each.annotation
        if not (told is inspect.Parameter.empty or "Tensor" in str(told)):
            raise InvalidSubmissionError(
                f"nothing tells what `{each.name}` is to be: define get_inputs, or give io with"
                " the arguments of the call"
            )
    return len(needed)


def _can_be_left_out(parameter: inspect.Parameter) -> bool:
    star = parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return star or parameter.default is not inspect.Parameter.empty


def guesses(model: object) -> tuple[Guess, ...]:
    """What may fit, the likeliest first: by the first layer that tells, then the usual shapes."""
    found = dict.fromkeys((*_by_layer(model), *_usual()))
    return tuple(islice(found, MOST_TRIED))


def fitting(found: Sequence[Guess], call: Callable[[Guess], object]) -> Guess:
    """The first guess that can be called; where none can, what the first one raised is raised."""
    first: Exception | None = None
    for guess in found:
        try:
            call(guess)
        except Exception as error:  # noqa: BLE001 - a stranger's code may raise anything
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
        if width := _extent(layer, "embed_dim"):
            yield Guess((_LENGTH, _BATCH, width))
            yield Guess((_ROWS, width))
        elif width := _extent(layer, "in_features"):
            yield Guess((_ROWS, width))
            yield Guess((_BATCH, _LENGTH, width))
        elif channels := _extent(layer, "in_channels"):
            yield from _images(channels, getattr(layer, "kernel_size", None))
        elif words := _extent(layer, "num_embeddings"):
            yield Guess((_BATCH, _LENGTH), below=words)
        else:
            continue
        return


def _extent(layer: torch.nn.Module, name: str) -> int:
    """What a layer says of an extent; 0 where it says nothing that can be one."""
    found = getattr(layer, name, None)
    return found if isinstance(found, int) and found > 0 else 0


def _images(channels: int, kernel_size: object) -> Iterator[Guess]:
    """Batches for a convolution over as many dimensions as its kernel has."""
    dimensions = len(kernel_size) if isinstance(kernel_size, tuple) else 2
    if dimensions == 1:
        yield Guess((_BATCH, channels, _ROWS))
    elif dimensions == 2:
        for sides in _SIDES:
            yield Guess((_BATCH, channels, *sides))
    else:
        yield Guess((4, channels, *(16,) * dimensions))


def _usual() -> Iterator[Guess]:
    for width in _WIDTHS:
        yield Guess((_ROWS, width))
        yield Guess((_LENGTH, _BATCH, width))
    yield Guess((_ROWS,))
    for channels in (3, 1):
        yield Guess((_BATCH, channels, *_SIDES[0]))
        yield Guess((_BATCH, channels, *_SIDES[-1]))
    yield Guess((1,))
