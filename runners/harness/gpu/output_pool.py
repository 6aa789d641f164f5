"""A torch allocator over memory that the judge owns, so that an output needs no copy."""

import ctypes
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch

from runners.harness.gpu.memory import cuda_driver

GRAIN = 2 << 20
"""Bytes; the size and address of every segment that torch requests are multiples of it."""

_ALLOCATE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)
_FREE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)


class Segments:
    """Allocates segments from one block of memory, and from the driver once that is used up."""

    def __init__(self, address: int, size: int, beyond: Callable[[int], int | None]) -> None:
        self.begin = self.free = address
        self.end = address + size
        self.beyond = beyond

    def allocate(self, size: int) -> int | None:
        """The address of `size` new bytes; None if there are none."""
        whole = -(-size // GRAIN) * GRAIN
        if self.free + whole > self.end:
            return self.beyond(size)
        self.free += whole
        return self.free - whole

    def owns(self, address: int) -> bool:
        """Whether a segment came from the block, which is never freed."""
        return self.begin <= address < self.end


class OutputPool:
    """A torch memory pool that allocates from the judge's memory first."""

    def __init__(self, address: int, size: int) -> None:
        segments = Segments(address, size, _from_driver)

        def allocate(size: int, _device: int, _stream: int | None) -> int | None:
            return segments.allocate(size)

        def free(address: int, _size: int, _device: int, _stream: int | None) -> None:
            if not segments.owns(address):
                cuda_driver().cuMemFree_v2(ctypes.c_uint64(address))

        self.kept = (_ALLOCATE(allocate), _FREE(free))  # torch keeps calling them
        pointers = (ctypes.cast(each, ctypes.c_void_p).value for each in self.kept)
        binding: Any = torch._C  # noqa: SLF001 - the public form needs a compiled library
        self.pool = torch.cuda.MemPool(binding._cuda_customAllocator(*pointers))  # noqa: SLF001

    def used(self) -> AbstractContextManager[None]:
        """Return a context in which this thread's torch allocations come from the pool."""
        return torch.cuda.use_mem_pool(self.pool)


def _from_driver(size: int) -> int | None:
    address = ctypes.c_uint64()
    made = cuda_driver().cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size))
    return address.value if made == 0 else None
