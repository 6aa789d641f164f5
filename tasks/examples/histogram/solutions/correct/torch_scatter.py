#!PODIUM leaderboard histogram
import torch
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    values = data["values"].long()
    counts = torch.zeros(data["bins"], dtype=torch.int64, device=values.device)
    return counts.scatter_add_(0, values, torch.ones_like(values))
