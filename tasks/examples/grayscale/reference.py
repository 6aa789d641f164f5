"""Inputs and check of the conversion to gray."""

import torch
from task import input_t, output_t
from utils import device, difference, generator, ruling

WEIGHTS = (0.2989, 0.5870, 0.1140)


def generate_input(height: int, width: int, seed: int) -> input_t:
    rgb = torch.rand(height, width, 3, generator=generator(seed), device=device())
    return rgb, torch.full_like(rgb[..., 0], float("nan"))


def ref_kernel(data: input_t) -> output_t:
    channels = data[0].to(torch.float64).unbind(dim=2)
    gray = sum(w * channel for w, channel in zip(WEIGHTS, channels, strict=True))
    return gray.to(torch.float32)


def check_implementation(data: input_t, output: output_t) -> tuple[bool, str]:
    return ruling(difference(output, ref_kernel(data), rtol=1e-5, atol=1e-6))
