#!PODIUM expect wrong_answer
import torch
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    return torch.zeros(data["bins"], dtype=torch.int64, device=data["values"].device)
