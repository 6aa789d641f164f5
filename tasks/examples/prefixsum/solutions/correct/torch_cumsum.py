#!PODIUM leaderboard prefixsum
import torch
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    source, output = data
    return torch.cumsum(source, dim=0, out=output)
