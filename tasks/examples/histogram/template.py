#!PODIUM leaderboard histogram
import torch
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    values = data["values"]
    # Correct but slow: one pass over the values per bin.
    return torch.stack([(values == bin).sum() for bin in range(data["bins"])])
