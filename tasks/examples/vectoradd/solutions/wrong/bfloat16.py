#!PODIUM expect wrong_answer
# Rounds to eight bits, which changes only the third digit.
import torch
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    a, b, output = data
    return output.copy_((a + b).to(torch.bfloat16))
