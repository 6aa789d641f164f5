#!PODIUM leaderboard vectoradd
#!PODIUM needs triton
import triton
import triton.language as tl
from task import input_t, output_t


@triton.jit
def add(a, b, output, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    total = tl.load(a + at, mask=inside) + tl.load(b + at, mask=inside)
    tl.store(output + at, total, mask=inside)


def custom_kernel(data: input_t) -> output_t:
    a, b, output = data
    size = a.numel()
    add[(triton.cdiv(size, 1024),)](a, b, output, size, BLOCK=1024)
    return output
