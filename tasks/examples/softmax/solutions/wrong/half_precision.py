#!PODIUM expect wrong_answer
import torch
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    centred = data - data.amax(dim=1, keepdim=True)
    return torch.softmax(centred.half(), dim=1).float()
