#!PODIUM expect wrong_answer
# Rounds to 256 shades.
import torch
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    rgb, output = data
    weights = torch.tensor([0.2989, 0.5870, 0.1140], device=rgb.device)
    grey = (rgb * weights).sum(dim=2)
    return output.copy_(torch.round(grey * 255) / 255)
