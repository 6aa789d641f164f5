#!PODIUM leaderboard vectoradd
import torch
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    a, b, output = data
    return torch.add(a, b, out=output)
