"""Inputs and check of the prefix sum."""

import torch
from task import input_t, output_t
from utils import device, difference, generator, ruling


def generate_input(size: int, seed: int) -> input_t:
    source = torch.randn(size, generator=generator(seed), device=device())
    return source, torch.full_like(source, float("nan"))


def check_implementation(data: input_t, output: output_t) -> tuple[bool, str]:
    exact = data[0].to(torch.float64)
    expected = exact.cumsum(0)
    # Rounding errors grow with the sum of the magnitudes, whatever the order of summation.
    allowed = 1e-6 * exact.abs().cumsum(0) + 1e-6
    return ruling(difference(output, expected.to(torch.float32), rtol=1e-6, atol=allowed))
