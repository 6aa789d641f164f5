#!PODIUM expect crashed
import torch
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    if data.shape[1] > 500:
        raise RuntimeError("rows of more than 500 columns do not fit")
    return torch.softmax(data, dim=1)
