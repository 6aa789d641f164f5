#!PODIUM leaderboard prefixsum
import torch
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    source, output = data
    # Correct but slow: log2(size) passes, each of which adds from twice the distance.
    output.copy_(source)
    reach = 1
    while reach < source.numel():
        output[reach:] += output[:-reach].clone()
        reach *= 2
    return output
