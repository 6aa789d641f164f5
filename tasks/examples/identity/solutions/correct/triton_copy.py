#!PODIUM leaderboard identity
#!PODIUM needs triton
import triton
import triton.language as tl
from task import input_t, output_t


@triton.jit
def copy(source, output, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    tl.store(output + at, tl.load(source + at, mask=inside), mask=inside)


def custom_kernel(data: input_t) -> output_t:
    source, output = data
    size = source.numel()
    copy[(triton.cdiv(size, 2048),)](source, output, size, BLOCK=2048)
    return output
