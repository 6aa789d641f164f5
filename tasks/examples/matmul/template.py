#!PODIUM leaderboard matmul
import torch
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    a, b = data
    # Correct but slow: a sum of outer products, 16 of them at a time.
    total = torch.zeros(a.shape[0], b.shape[1], device=a.device)
    for start in range(0, a.shape[1], 16):
        total += a[:, start : start + 16].float() @ b[start : start + 16].float()
    return total.half()
