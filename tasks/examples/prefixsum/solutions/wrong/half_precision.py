#!PODIUM expect wrong_answer
import torch
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    source, output = data
    return output.copy_(torch.cumsum(source.double(), dim=0).half())
