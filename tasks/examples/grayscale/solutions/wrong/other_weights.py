#!PODIUM expect wrong_answer
# Uses the weights of another standard.
import torch
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    rgb, output = data
    weights = torch.tensor([0.2126, 0.7152, 0.0722], device=rgb.device)
    return output.copy_((rgb * weights).sum(dim=2))
