"""Inputs and check of the matrix product."""

import torch
from task import input_t, output_t
from utils import device, difference, generator, ruling


def generate_input(m: int, n: int, k: int, seed: int) -> input_t:
    random = generator(seed)
    a = torch.randn(m, k, generator=random, device=device()).to(torch.float16)
    b = torch.randn(k, n, generator=random, device=device()).to(torch.float16)
    return a, b


def ref_kernel(data: input_t) -> output_t:
    a, b = data
    return (a.to(torch.float64) @ b.to(torch.float64)).to(torch.float16)


def check_implementation(data: input_t, output: output_t) -> tuple[bool, str]:
    # The result is rounded to 11 bits; sums of k products reach sqrt(k).
    spread = data[0].shape[1] ** 0.5
    return ruling(difference(output, ref_kernel(data), rtol=2e-3, atol=1e-3 * spread))
