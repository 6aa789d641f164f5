#!PODIUM expect wrong_answer
# Every row sums to one, which a careless check would accept.
import torch
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    return torch.full_like(data, 1.0 / data.shape[1])
