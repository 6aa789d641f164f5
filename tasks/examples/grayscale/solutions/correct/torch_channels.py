#!PODIUM leaderboard grayscale
import torch
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    rgb, output = data
    red, green, blue = rgb.unbind(dim=2)
    torch.mul(red, 0.2989, out=output)
    return output.add_(green, alpha=0.5870).add_(blue, alpha=0.1140)
