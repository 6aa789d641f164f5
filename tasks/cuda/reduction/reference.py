"""Inputs and check of the sum."""

import torch
from utils import compared, normal


def generate_input(size: int, seed: int) -> torch.Tensor:
    return normal(seed, (size,), dtype=torch.float32)[0]


def ref_kernel(data: torch.Tensor) -> torch.Tensor:
    return data.sum(dim=0, keepdim=True)


def check_implementation(data: torch.Tensor, output: torch.Tensor) -> tuple[bool, str]:
    exact = data.to(torch.float64)
    # The rounding error of a sum grows with the sum of the magnitudes, not with the sum.
    return compared(output, exact.sum(dim=0, keepdim=True), rtol=0.0, atol=1e-6 * exact.abs().sum())
