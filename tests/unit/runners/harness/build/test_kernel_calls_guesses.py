"""Shapes of inputs that nobody told."""

import pytest
import torch
from torch import nn

from runners.harness.build.kernel_calls import (
    MAX_GUESSES,
    Guess,
    first_accepted,
    guesses,
    required_tensors,
)
from runners.languages import InvalidSubmissionError


@pytest.mark.parametrize(
    ("model", "shape"),
    [
        (nn.MultiheadAttention(512, 8), (128, 16, 512)),
        (nn.Sequential(nn.ReLU(), nn.Linear(48, 7), nn.Linear(7, 2)), (1024, 48)),
        (nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten()), (16, 3, 64, 64)),
        (nn.Conv1d(5, 8, 3), (16, 5, 1024)),
        (nn.Conv3d(2, 8, 3), (4, 2, 16, 16, 16)),
        (nn.ReLU(), (1024, 1024)),
        (lambda x: x, (1024, 1024)),
    ],
    ids=["embed_dim", "in_features", "in_channels", "row", "volume", "no layer", "function"],
)
def test_the_first_layer_that_tells_decides(model: object, shape: tuple[int, ...]) -> None:
    found = guesses(model)
    assert found[0].shape == shape
    assert len(found) <= MAX_GUESSES
    assert len(set(found)) == len(found)


def test_an_embedding_is_given_words_that_it_has() -> None:
    model = nn.Sequential(nn.Embedding(11, 4), nn.Linear(4, 2))
    drawn = guesses(model)[0].random_tensor()
    assert (drawn.dtype, drawn.shape) == (torch.int64, (16, 128))
    assert 0 <= int(drawn.min()) <= int(drawn.max()) < 11
    assert model(drawn).shape == (16, 128, 2)


def test_the_first_shape_that_can_be_called_is_taken() -> None:
    weight = torch.ones(256, 3)
    found = first_accepted(guesses(None), lambda guess: guess.random_tensor() @ weight)
    assert found.shape == (1024, 256)


def test_where_no_shape_fits_the_first_reason_is_told_and_the_remedy() -> None:
    tried: list[Guess] = []

    def call(guess: Guess) -> None:
        tried.append(guess)
        raise NameError(f"number {len(tried)}")

    with pytest.raises(NameError, match=r"number 1\b(?!\d)") as told:
        first_accepted(guesses(None), call)
    assert len(tried) == len(guesses(None)) <= MAX_GUESSES
    (note,) = told.value.__notes__
    assert "Define get_inputs" in note
    assert "[1024, 1024]" in note


def test_a_parameter_that_can_be_no_tensor_is_named() -> None:
    def takes(self: object, x: torch.Tensor, n: int = 3, *rest: int) -> None: ...

    assert required_tensors(takes, skipped=1) == 1
    assert required_tensors(lambda x, y: x + y) == 2

    def counts(n: int) -> None: ...

    with pytest.raises(InvalidSubmissionError, match=r"`n`.*get_inputs.*io"):
        required_tensors(counts)
