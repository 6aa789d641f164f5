"""Inputs and check of the prefix sum."""

import torch
from task import input_t, output_t
from utils import device, difference, generator, ruling


def generate_input(size: int, seed: int) -> input_t:
    source = torch.randn(size, generator=generator(seed), device=device())
    return source, torch.full_like(source, float("nan"))


def ref_kernel(data: input_t) -> output_t:
    return data[0].to(torch.float64).cumsum(0).to(torch.float32)


def check_implementation(data: input_t, output: output_t) -> tuple[bool, str]:
    # Rounding errors grow with the sum of the magnitudes, whatever the order of summation.
    allowed = 1e-6 * data[0].to(torch.float64).abs().cumsum(0) + 1e-6
    return ruling(difference(output, ref_kernel(data), rtol=1e-6, atol=allowed))
