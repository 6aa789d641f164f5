#!PODIUM expect wrong_answer
# Forgets the last, incomplete block.
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    a, b, output = data
    end = a.numel() // 64 * 64
    output[:end] = a[:end] + b[:end]
    return output
