#!PODIUM leaderboard vectoradd
import torch
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    a, b, output = data
    # Correct but slow: every number is widened to 64 bits and back.
    return output.copy_(a.to(torch.float64) + b.to(torch.float64))
