#!PODIUM expect memory_exceeded
import torch
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    hoard = []
    while True:
        hoard.append(torch.ones(16 << 20, device="cpu"))
