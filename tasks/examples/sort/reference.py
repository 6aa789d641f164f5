"""Inputs and check of the sort."""

import torch
from task import input_t, output_t
from utils import device, difference, generator, ruling


def generate_input(size: int, seed: int) -> input_t:
    random = generator(seed)
    data = torch.randn(size, generator=random, device=device()) * 1000
    repeated = torch.rand(size, generator=random, device=device()) < 0.125
    data[repeated] = data[repeated].round()
    # The input is never sorted already: the largest number comes first.
    top = data.argmax()
    data[0], data[top] = data[top].clone(), data[0].clone()
    return data


def ref_kernel(data: input_t) -> output_t:
    return torch.sort(data).values


def check_implementation(data: input_t, output: output_t) -> tuple[bool, str]:
    return ruling(difference(output, ref_kernel(data)))
