#!PODIUM leaderboard identity
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    source, output = data
    # Correct but slow: one thousandth of the elements at a time.
    for start in range(1000):
        output[start::1000] = source[start::1000]
    return output
