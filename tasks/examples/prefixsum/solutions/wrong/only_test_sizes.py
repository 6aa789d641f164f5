#!PODIUM expect wrong_answer
# Restarts the sum every 70001 elements, which is more than any test has.
import torch
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    source, output = data
    level = 70001
    for start in range(0, source.numel(), level):
        output[start : start + level] = torch.cumsum(source[start : start + level], dim=0)
    return output
