#!PODIUM leaderboard grayscale
import torch
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    rgb, output = data
    # Correct but slow: one row at a time.
    weights = torch.tensor([0.2989, 0.5870, 0.1140], device=rgb.device)
    for row, line in zip(rgb, output):
        line.copy_((row * weights).sum(dim=1))
    return output
