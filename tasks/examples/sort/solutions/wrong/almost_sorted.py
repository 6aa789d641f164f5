#!PODIUM expect wrong_answer
# Sorts whole numbers only: neighbours that are closer stay as they were.
import torch
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    return data[torch.argsort(data.floor(), stable=True)]
