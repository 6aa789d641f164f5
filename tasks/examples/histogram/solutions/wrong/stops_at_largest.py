#!PODIUM expect wrong_answer
# The output is too short if the largest value does not occur.
import torch
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    return torch.bincount(data["values"])
