#!PODIUM leaderboard histogram
#!PODIUM needs triton
import torch
import triton
import triton.language as tl
from task import input_t, output_t


@triton.jit
def count(values, counts, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    found = tl.load(values + at, mask=inside, other=0)
    tl.atomic_add(counts + found, tl.full((BLOCK,), 1, tl.int64), mask=inside)


def custom_kernel(data: input_t) -> output_t:
    values = data["values"]
    counts = torch.zeros(data["bins"], dtype=torch.int64, device=values.device)
    size = values.numel()
    count[(triton.cdiv(size, 1024),)](values, counts, size, BLOCK=1024)
    return counts
