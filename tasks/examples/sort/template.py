#!PODIUM leaderboard sort
import torch
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    # Right, and slow: the order is found first and the numbers are gathered after it.
    return data[torch.argsort(data, stable=True)]
