"""Inputs and check of the histogram."""

import torch
from task import input_t, output_t
from utils import device, difference, generator, ruling


def generate_input(size: int, bins: int, seed: int) -> input_t:
    uniform = torch.rand(size, generator=generator(seed), device=device())
    values = (uniform.square() * bins).to(torch.int32).clamp_(max=bins - 1)
    return {"values": values, "bins": bins}


def ref_kernel(data: input_t) -> output_t:
    return torch.bincount(data["values"], minlength=data["bins"])


def check_implementation(data: input_t, output: output_t) -> tuple[bool, str]:
    return ruling(difference(output, ref_kernel(data)))
