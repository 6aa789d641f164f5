"""Inputs and check of the vector addition."""

import torch
from utils import compared, normal


def generate_input(size: int, seed: int) -> tuple[torch.Tensor, ...]:
    return normal(seed, (size,), (size,), dtype=torch.float16)


def ref_kernel(data: tuple[torch.Tensor, ...]) -> torch.Tensor:
    return data[0] + data[1]


def check_implementation(data: tuple[torch.Tensor, ...], output: torch.Tensor) -> tuple[bool, str]:
    a, b = (each.to(torch.float64) for each in data)
    return compared(output, a + b, rtol=1e-3, atol=1e-6)
