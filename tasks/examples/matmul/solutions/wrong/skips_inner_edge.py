#!PODIUM expect wrong_answer
# Ignores the last, incomplete tile of 16 along k.
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    a, b = data
    end = max(16, a.shape[1] // 16 * 16)
    return (a[:, :end].float() @ b[:end].float()).half()
