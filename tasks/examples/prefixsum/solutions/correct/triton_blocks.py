#!PODIUM leaderboard prefixsum
#!PODIUM needs triton
import torch
import triton
import triton.language as tl
from task import input_t, output_t


@triton.jit
def scan_blocks(source, output, totals, size, BLOCK: tl.constexpr):
    block = tl.program_id(0)
    at = block * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(source + at, mask=at < size, other=0.0)
    tl.store(output + at, tl.cumsum(values, axis=0), mask=at < size)
    tl.store(totals + block, tl.sum(values, axis=0))


@triton.jit
def add_carry(output, carries, size, BLOCK: tl.constexpr):
    block = tl.program_id(0) + 1
    at = block * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(output + at, mask=at < size)
    tl.store(output + at, values + tl.load(carries + block - 1), mask=at < size)


def custom_kernel(data: input_t) -> output_t:
    source, output = data
    size, block = source.numel(), 2048
    count = triton.cdiv(size, block)
    totals = torch.empty(count, device=source.device)
    scan_blocks[(count,)](source, output, totals, size, BLOCK=block)
    if count > 1:
        carries = torch.cumsum(totals, dim=0)
        add_carry[(count - 1,)](output, carries, size, BLOCK=block)
    return output
