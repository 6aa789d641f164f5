from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from typing_extensions import override

from runners.harness.build.loading import ModelKernel, pack_weights


class Twice(nn.Module):
    made = 0

    def __init__(self, width: int) -> None:
        super().__init__()
        type(self).made += 1
        self.scale = nn.Parameter(torch.randn(width))
        self.prepared = self.scale.detach() * 2

    @override
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.scale


def data(
    seed: int = 3, precision: str = "fp32", dtype: torch.dtype = torch.float32
) -> dict[str, Any]:
    torch.manual_seed(seed)
    state = {"scale": torch.randn(4).to(dtype)}
    return {
        "seed": seed,
        "precision": precision,
        "init": [4],
        "weights": pack_weights(state, "cpu"),
        "inputs": [torch.ones(4, dtype=dtype)],
    }


def test_the_model_is_made_once_with_the_weights_that_came() -> None:
    Twice.made = 0
    kernel, first, other = ModelKernel(Twice), data(), data(4)
    for each in (first, first, other):
        assert torch.equal(kernel(each), each["weights"]["flat"]["float32"][:4])
    assert Twice.made == 2


def test_what_a_constructor_prepares_is_of_the_same_weights() -> None:
    kernel = ModelKernel(Twice)
    output = kernel(data())
    assert torch.equal(kernel.model.prepared, output * 2)


def test_weights_that_were_only_sent_win_over_the_seed() -> None:
    changed = data()
    changed["weights"]["flat"]["float32"] += 1
    assert torch.equal(ModelKernel(Twice)(changed), changed["weights"]["flat"]["float32"][:4])


def test_the_model_has_the_precision_that_is_asked_for() -> None:
    assert ModelKernel(Twice)(data(precision="bf16", dtype=torch.bfloat16)).dtype is torch.bfloat16


def test_no_gradients_are_kept() -> None:
    assert not ModelKernel(Twice)(data()).requires_grad


def test_what_is_no_module_is_called_all_the_same() -> None:
    def make(width: int) -> Callable[[torch.Tensor], torch.Tensor]:
        return lambda x: x + width

    assert torch.equal(ModelKernel(make)(data()), torch.full((4,), 5.0))


def test_a_constructor_that_fails_is_the_submissions_own() -> None:
    with pytest.raises(TypeError):
        ModelKernel(lambda: None)(data())
