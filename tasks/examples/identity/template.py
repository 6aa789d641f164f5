#!PODIUM leaderboard identity
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    source, output = data
    # Right, and slow: element after element in strides of a thousand.
    for start in range(1000):
        output[start::1000] = source[start::1000]
    return output
