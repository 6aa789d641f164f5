#!PODIUM leaderboard softmax
import torch
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    # Correct but slow: one row at a time.
    output = torch.empty_like(data)
    for row, result in zip(data, output):
        weights = torch.exp(row - row.max())
        result.copy_(weights / weights.sum())
    return output
