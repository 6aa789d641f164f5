#!PODIUM leaderboard grayscale
#!PODIUM needs triton
import triton
import triton.language as tl
from task import input_t, output_t


@triton.jit
def grayscale(rgb, output, pixels, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < pixels
    red = tl.load(rgb + 3 * at, mask=inside)
    green = tl.load(rgb + 3 * at + 1, mask=inside)
    blue = tl.load(rgb + 3 * at + 2, mask=inside)
    tl.store(output + at, 0.2989 * red + 0.5870 * green + 0.1140 * blue, mask=inside)


def custom_kernel(data: input_t) -> output_t:
    rgb, output = data
    pixels = output.numel()
    grayscale[(triton.cdiv(pixels, 1024),)](rgb, output, pixels, BLOCK=1024)
    return output
