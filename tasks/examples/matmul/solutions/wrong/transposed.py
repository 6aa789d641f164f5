#!PODIUM expect wrong_answer
# Transposes the result; its shape is right only if it is square.
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    a, b = data
    return (a.float() @ b.float()).half().t().contiguous()
