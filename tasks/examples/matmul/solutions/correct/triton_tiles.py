#!PODIUM leaderboard matmul
#!PODIUM needs triton
import torch
import triton
import triton.language as tl
from task import input_t, output_t


@triton.jit
def matmul(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        inner = start + tl.arange(0, BK)
        left = tl.load(
            a + rows[:, None] * k + inner[None, :],
            mask=(rows[:, None] < m) & (inner[None, :] < k),
            other=0.0,
        )
        right = tl.load(
            b + inner[:, None] * n + cols[None, :],
            mask=(inner[:, None] < k) & (cols[None, :] < n),
            other=0.0,
        )
        total += tl.dot(left, right)
    tl.store(
        c + rows[:, None] * n + cols[None, :],
        total.to(tl.float16),
        mask=(rows[:, None] < m) & (cols[None, :] < n),
    )


def custom_kernel(data: input_t) -> output_t:
    a, b = data
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty(m, n, dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(m, 64), triton.cdiv(n, 64))
    matmul[grid](a, b, c, m, n, k, BM=64, BN=64, BK=32)
    return c
