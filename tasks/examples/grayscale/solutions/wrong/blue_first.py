#!PODIUM expect wrong_answer
import torch
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    rgb, output = data
    weights = torch.tensor([0.1140, 0.5870, 0.2989], device=rgb.device)
    return output.copy_((rgb * weights).sum(dim=2))
