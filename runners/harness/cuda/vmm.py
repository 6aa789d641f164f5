"""Device memory as file descriptors, through CUDA's virtual memory management.

One allocation holds exactly one buffer, so that mapping it shares nothing beside it; and the
descriptor crosses user, mount and network namespaces, where legacy IPC handles may not.
Function and structure layouts: CUDA driver API, chapter "Virtual Memory Management".
"""

import ctypes
import os
from typing import ClassVar, Self

import torch

from runners.harness.channel import Transport
from runners.harness.cuda.driver import check, raw_bytes
from runners.harness.cuda.driver import cuda_driver

_PINNED = 1
_POSIX_FD = 1
_ON_DEVICE = 1
_READ_WRITE = 3


class _Location(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]  # type: ignore[mutable-override]


class _Properties(ctypes.Structure):
    _fields_ = [  # type: ignore[mutable-override]
        ("type", ctypes.c_int),
        ("handle_types", ctypes.c_int),
        ("location", _Location),
        ("win32", ctypes.c_void_p),
        ("flags", ctypes.c_ubyte * 8),
    ]


class _Access(ctypes.Structure):
    _fields_ = [("location", _Location), ("flags", ctypes.c_int)]  # type: ignore[mutable-override]


def _properties(device: int) -> _Properties:
    properties = _Properties()
    properties.type = _PINNED
    properties.handle_types = _POSIX_FD
    properties.location = _Location(_ON_DEVICE, device)
    return properties


def _map(driver: ctypes.CDLL, handle: ctypes.c_uint64, size: int, device: int) -> int:
    address = ctypes.c_uint64()
    width = ctypes.c_size_t(size)
    zero = ctypes.c_uint64(0)
    reserve = driver.cuMemAddressReserve(
        ctypes.byref(address), width, ctypes.c_size_t(0), zero, zero
    )
    check(reserve, "cuMemAddressReserve")
    check(driver.cuMemMap(address, width, ctypes.c_size_t(0), handle, zero), "cuMemMap")
    access = _Access(_Location(_ON_DEVICE, device), _READ_WRITE)
    granted = driver.cuMemSetAccess(address, width, ctypes.byref(access), ctypes.c_size_t(1))
    check(granted, "cuMemSetAccess")
    return int(address.value)


class DeviceBuffer:
    """Bytes on the GPU, shared between two processes by a descriptor."""

    transport: ClassVar[Transport] = "vmm"

    def __init__(self, fd: int, address: int, size: int) -> None:
        self.fd = fd
        self.address = address
        self.size = size
        self.bytes = raw_bytes(address, size)

    @classmethod
    def create(cls, size: int, device: int = 0) -> Self:
        """Allocate at least `size` bytes and export them."""
        driver = cuda_driver()
        properties = _properties(device)
        grain = ctypes.c_size_t()
        asked = driver.cuMemGetAllocationGranularity(
            ctypes.byref(grain), ctypes.byref(properties), 0
        )
        check(asked, "cuMemGetAllocationGranularity")
        whole = max(1, -(-size // grain.value)) * grain.value
        handle = ctypes.c_uint64()
        zero = ctypes.c_uint64(0)
        made = driver.cuMemCreate(
            ctypes.byref(handle), ctypes.c_size_t(whole), ctypes.byref(properties), zero
        )
        check(made, "cuMemCreate")
        fd = ctypes.c_int(-1)
        exported = driver.cuMemExportToShareableHandle(ctypes.byref(fd), handle, _POSIX_FD, zero)
        check(exported, "cuMemExportToShareableHandle")
        address = _map(driver, handle, whole, device)
        check(driver.cuMemRelease(handle), "cuMemRelease")  # the mapping keeps it
        return cls(fd.value, address, whole)

    @classmethod
    def adopt(cls, fd: int, size: int, device: int = 0) -> Self:
        """Map what another process exported."""
        driver = cuda_driver()
        handle = ctypes.c_uint64()
        imported = driver.cuMemImportFromShareableHandle(
            ctypes.byref(handle), ctypes.c_void_p(fd), _POSIX_FD
        )
        check(imported, "cuMemImportFromShareableHandle")
        return cls(fd, _map(driver, handle, size, device), size)

    def close(self) -> None:
        """Unmap the memory and close the descriptor."""
        torch.cuda.synchronize()
        driver = cuda_driver()
        self.bytes = torch.empty(0, dtype=torch.uint8, device="cuda")
        width = ctypes.c_size_t(self.size)
        check(driver.cuMemUnmap(ctypes.c_uint64(self.address), width), "cuMemUnmap")
        freed = driver.cuMemAddressFree(ctypes.c_uint64(self.address), width)
        check(freed, "cuMemAddressFree")
        os.close(self.fd)
