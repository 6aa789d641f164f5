#!PODIUM leaderboard sort
import torch
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    # Correct but slow: a sort of the indices, then a gather.
    return data[torch.argsort(data, stable=True)]
