#!PODIUM leaderboard prefixsum
import torch
from task import input_t, output_t
from torch.nn.functional import pad


def custom_kernel(data: input_t) -> output_t:
    source, output = data
    width = 1024
    size = source.numel()
    blocks = pad(source, (0, -size % width)).double().reshape(-1, width).cumsum(1)
    before = blocks[:, -1].cumsum(0) - blocks[:, -1]
    return output.copy_((blocks + before[:, None]).flatten()[:size])
