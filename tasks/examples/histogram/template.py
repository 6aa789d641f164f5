#!PODIUM leaderboard histogram
import torch
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    values = data["values"]
    # Right, and slow: one pass over the values for each bin.
    return torch.stack([(values == bin).sum() for bin in range(data["bins"])])
