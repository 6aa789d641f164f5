#!PODIUM expect wrong_answer
# Rounds to eight bits on the way, which shows in the third digit only.
import torch
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    a, b, output = data
    return output.copy_((a + b).to(torch.bfloat16))
