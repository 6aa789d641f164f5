#!PODIUM expect wrong_answer
# Passes every test, because it computes only as many elements as the largest test has.
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    a, b, output = data
    end = 65537
    output[:end] = a[:end] + b[:end]
    return output
