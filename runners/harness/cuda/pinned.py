"""Pinned host memory in a descriptor, for machines that refuse to share device memory.

Both sides see it through the GPU; the candidate copies its input onto the device first.
"""

import ctypes
import mmap
import os
from typing import ClassVar, Self

import torch

from runners.harness.arena import sealed_memory
from runners.harness.channel import Transport
from runners.harness.cuda.driver import check, raw_bytes
from runners.harness.cuda.driver import cuda_driver

_DEVICE_MAP = 2


class HostBuffer:
    """Bytes of host memory that the GPU can reach, shared between two processes."""

    transport: ClassVar[Transport] = "pinned-host"

    def __init__(self, fd: int, size: int) -> None:
        self.fd = fd
        self.size = size
        self.memory = mmap.mmap(fd, size)
        self.host = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        driver = cuda_driver()
        registered = driver.cuMemHostRegister_v2(
            ctypes.c_void_p(self.host), ctypes.c_size_t(size), _DEVICE_MAP
        )
        check(registered, "cuMemHostRegister")
        address = ctypes.c_uint64()
        found = driver.cuMemHostGetDevicePointer_v2(
            ctypes.byref(address), ctypes.c_void_p(self.host), 0
        )
        check(found, "cuMemHostGetDevicePointer")
        self.address = int(address.value)
        self.bytes = raw_bytes(self.address, size)

    @classmethod
    def create(cls, size: int) -> Self:
        """At least `size` fresh bytes."""
        torch.cuda.current_stream()  # makes the context that registering needs
        whole = -(-max(1, size) // mmap.PAGESIZE) * mmap.PAGESIZE
        return cls(sealed_memory("pinned", whole), whole)

    @classmethod
    def adopt(cls, fd: int, size: int) -> Self:
        """Map what another process made."""
        torch.cuda.current_stream()
        return cls(fd, size)

    def close(self) -> None:
        """Unregister the memory and close the descriptor; views of it end with the process."""
        torch.cuda.synchronize()
        driver = cuda_driver()
        check(driver.cuMemHostUnregister(ctypes.c_void_p(self.host)), "cuMemHostUnregister")
        os.close(self.fd)
