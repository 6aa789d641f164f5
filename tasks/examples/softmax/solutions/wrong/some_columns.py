#!PODIUM expect wrong_answer
# Overflows in rows whose maximum is far above the first elements.
import torch
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    weights = torch.exp(data - data[:, :16].amax(dim=1, keepdim=True))
    return weights / weights.sum(dim=1, keepdim=True)
