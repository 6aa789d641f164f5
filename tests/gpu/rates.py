"""Measures a GPU's best rates, to compare with the nominal ones of `runners.contract.gpus`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

SIZE = 8192
"""Rows and columns of the matrices that are multiplied."""
COPIED = 1 << 30
"""Bytes of the tensor that is copied, far more than any cache holds."""
WARM_UPS = 3
TRIES = 10
"""The best one counts."""
_BF16_SINCE = (8, 0)
_FP8_SINCE = (8, 9)
"""Compute capabilities whose tensor cores know the type."""


@dataclass(frozen=True, slots=True)
class Rates:
    """What one GPU achieved, a second: in dense products of random square matrices, and in a copy.

    An addition and a multiplication are two operations. None if its tensor cores do not support
    the type.
    """

    bytes_per_s: float
    """Of a copy within its memory: bytes read and bytes written together."""
    fp32_per_s: float
    """Operations in single precision, not in TF32."""
    fp16_per_s: float
    bf16_per_s: float | None
    fp8_per_s: float | None
    """Operations in E4M3 with one scale a tensor, fast accumulation and a bfloat16 result."""


def measured_rates(size: int = SIZE, copied: int = COPIED, device: str = "cuda") -> Rates:
    """Measure this process's first GPU, in about two seconds and 2 GiB of its memory.

    It creates a CUDA context and heats the GPU, so nothing can be timed at the same time. Raises
    torch.OutOfMemoryError if the memory is not free.
    """
    capability = torch.cuda.get_device_capability()
    operations = 2.0 * size**3
    return Rates(
        bytes_per_s=2.0 * copied / _best_s(_copy(copied, device)),
        fp32_per_s=operations / _best_s(_product(size, torch.float32, device)),
        fp16_per_s=operations / _best_s(_product(size, torch.float16, device)),
        bf16_per_s=(
            operations / _best_s(_product(size, torch.bfloat16, device))
            if capability >= _BF16_SINCE
            else None
        ),
        fp8_per_s=(
            operations / _best_s(_product_fp8(size, device)) if capability >= _FP8_SINCE else None
        ),
    )


def _best_s(work: Callable[[], object]) -> float:
    """The least of several seconds that the work took on the device, queued without a pause."""
    with _full_precision():
        for _ in range(WARM_UPS):
            work()
        spans = [_span(work) for _ in range(TRIES)]
        torch.cuda.synchronize()
    return min(float(begin.elapsed_time(end)) for begin, end in spans) / 1e3


def _span(work: Callable[[], object]) -> tuple[torch.cuda.Event, torch.cuda.Event]:
    begin = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    end = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    begin.record()
    work()
    end.record()
    return begin, end


@contextmanager
def _full_precision() -> Iterator[None]:
    """Disable TF32 in products of single precision."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _copy(size: int, device: str) -> Callable[[], object]:
    source = torch.randint(256, (size,), dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    return lambda: target.copy_(source)


def _product(size: int, dtype: torch.dtype, device: str) -> Callable[[], object]:
    """Multiply random numbers, because a product of zeros draws less power and is faster."""
    a, b = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
    product = torch.empty_like(a)
    return lambda: torch.mm(a, b, out=product)


def _product_fp8(size: int, device: str) -> Callable[[], object]:
    a, b = (torch.randn(size, size, device=device).to(torch.float8_e4m3fn) for _ in range(2))
    one = torch.ones((), device=device)
    return lambda: torch._scaled_mm(
        a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=True
    )
