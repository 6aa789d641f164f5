#!PODIUM expect wrong_answer
# Sorts by the floor of each number: numbers with the same floor keep their order.
import torch
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    return data[torch.argsort(data.floor(), stable=True)]
