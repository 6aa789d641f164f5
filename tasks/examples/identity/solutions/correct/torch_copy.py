#!PODIUM leaderboard identity
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    source, output = data
    return output.copy_(source)
