#!PODIUM leaderboard softmax
#!PODIUM needs triton
import torch
import triton
import triton.language as tl
from task import input_t, output_t


@triton.jit
def softmax(source, output, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * cols
    at = tl.arange(0, BLOCK)
    inside = at < cols
    values = tl.load(source + row + at, mask=inside, other=-float("inf"))
    weights = tl.exp(values - tl.max(values, axis=0))
    tl.store(output + row + at, weights / tl.sum(weights, axis=0), mask=inside)


def custom_kernel(data: input_t) -> output_t:
    rows, cols = data.shape
    output = torch.empty_like(data)
    softmax[(rows,)](data, output, cols, BLOCK=triton.next_power_of_2(cols), num_warps=8)
    return output
