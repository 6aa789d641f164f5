"""Inputs and check of the matrix product."""

import torch
from utils import compared, normal


def generate_input(m: int, n: int, k: int, seed: int) -> tuple[torch.Tensor, ...]:
    return normal(seed, (m, k), (k, n), dtype=torch.float16)


def ref_kernel(data: tuple[torch.Tensor, ...]) -> torch.Tensor:
    a, b = data
    return a @ b


def check_implementation(data: tuple[torch.Tensor, ...], output: torch.Tensor) -> tuple[bool, str]:
    a, b = (each.to(torch.float64) for each in data)
    # The result is rounded to 11 bits; sums of k products reach sqrt(k).
    return compared(output, a @ b, rtol=2e-3, atol=1e-3 * a.shape[1] ** 0.5)
