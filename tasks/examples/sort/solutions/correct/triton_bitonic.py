#!PODIUM leaderboard sort
#!PODIUM needs triton
import torch
import triton
import triton.language as tl
from task import input_t, output_t


@triton.jit
def exchange(values, run, reach, size, BLOCK: tl.constexpr):
    # Each program element owns one pair of the bitonic network: (low, low + reach).
    pair = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = pair < size // 2
    low = pair // reach * 2 * reach + pair % reach
    left = tl.load(values + low, mask=inside)
    right = tl.load(values + low + reach, mask=inside)
    ascending = (low & run) == 0
    swap = (left > right) == ascending
    tl.store(values + low, tl.where(swap, right, left), mask=inside)
    tl.store(values + low + reach, tl.where(swap, left, right), mask=inside)


def custom_kernel(data: input_t) -> output_t:
    count = data.numel()
    size = max(2, triton.next_power_of_2(count))
    values = torch.full((size,), float("inf"), device=data.device)
    values[:count] = data
    grid = (triton.cdiv(size // 2, 512),)
    run = 2
    while run <= size:
        reach = run // 2
        while reach >= 1:
            exchange[grid](values, run, reach, size, BLOCK=512)
            reach //= 2
        run *= 2
    return values[:count].clone()
