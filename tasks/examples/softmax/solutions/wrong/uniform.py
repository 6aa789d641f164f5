#!PODIUM expect wrong_answer
# Rows sum up to one, as a careless check would ask.
import torch
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    return torch.full_like(data, 1.0 / data.shape[1])
