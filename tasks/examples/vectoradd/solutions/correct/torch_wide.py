#!PODIUM leaderboard vectoradd
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    a, b, output = data
    return output.copy_(a.double() + b.double())
