#!PODIUM expect wrong_answer
# Replaces each repeated number by infinity.
import torch
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    distinct = torch.unique(data)
    output = torch.full_like(data, float("inf"))
    output[: distinct.numel()] = distinct
    return output
