#!PODIUM expect wrong_answer
# Passes every test: it stops after the largest size of the tests.
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    a, b, output = data
    end = 65537
    output[:end] = a[:end] + b[:end]
    return output
