#!PODIUM expect wrong_answer
# Counts only every second value, and doubles the counts.
import torch
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    return 2 * torch.bincount(data["values"][::2], minlength=data["bins"])
