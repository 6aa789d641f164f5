#!PODIUM expect wrong_answer
import torch
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    rgb, _ = data
    weights = torch.tensor([0.2989, 0.5870, 0.1140], device=rgb.device)
    return (rgb * weights).sum(dim=2, keepdim=True)
