#!PODIUM expect wrong_answer
# Overflows in rows of large values, where it returns NaN.
import torch
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    weights = torch.exp(data)
    return weights / weights.sum(dim=1, keepdim=True)
