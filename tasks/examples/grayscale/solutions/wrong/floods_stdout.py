#!PODIUM expect output_exceeded
# The output is correct, but the submission prints too much.
import torch
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    rgb, output = data
    for _ in range(2048):
        print("grey " * 200, flush=True)
    weights = torch.tensor([0.2989, 0.5870, 0.1140], device=rgb.device)
    return output.copy_((rgb * weights).sum(dim=2))
