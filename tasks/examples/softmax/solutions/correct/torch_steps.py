#!PODIUM leaderboard softmax
import torch
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    weights = torch.exp(data - data.amax(dim=1, keepdim=True))
    return weights / weights.sum(dim=1, keepdim=True)
