#!PODIUM leaderboard softmax
import torch
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    # Correct but slow: one row at a time.
    rows = []
    for row in data:
        weights = torch.exp(row - row.max())
        rows.append(weights / weights.sum())
    return torch.stack(rows)
