"""Device memory as file descriptors, through CUDA's virtual memory management.

One allocation holds exactly one buffer, so that mapping it shares nothing beside it; and the
descriptor crosses user, mount and network namespaces, where legacy IPC handles may not.
Function and structure layouts: CUDA driver API, chapter "Virtual Memory Management".
"""

import ctypes
import os
from typing import Self

import torch

from runners.harness.values import DTYPES, TensorNode

_PINNED = 1
_POSIX_FD = 1
_ON_DEVICE = 1
_READ_WRITE = 3


class DriverError(Exception):
    """A call of the CUDA driver failed."""


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


class _Bytes:
    """Raw device memory in the form that `torch.as_tensor` takes without a copy."""

    def __init__(self, address: int, size: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (size,),
            "typestr": "|u1",
            "data": (address, False),
            "version": 3,
            "strides": None,
        }


def _driver() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")


def _check(status: int, call: str) -> None:
    if status != 0:
        raise DriverError(f"{call} failed with CUDA error {status}")


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
    _check(reserve, "cuMemAddressReserve")
    _check(driver.cuMemMap(address, width, ctypes.c_size_t(0), handle, zero), "cuMemMap")
    access = _Access(_Location(_ON_DEVICE, device), _READ_WRITE)
    granted = driver.cuMemSetAccess(address, width, ctypes.byref(access), ctypes.c_size_t(1))
    _check(granted, "cuMemSetAccess")
    return int(address.value)


class DeviceBuffer:
    """Bytes on the GPU, shared between two processes by a descriptor."""

    def __init__(self, fd: int, address: int, size: int) -> None:
        self.fd = fd
        self.address = address
        self.size = size
        self.bytes = torch.as_tensor(_Bytes(address, size), device="cuda")

    @classmethod
    def create(cls, size: int, device: int = 0) -> Self:
        """Allocate at least `size` bytes and export them."""
        driver = _driver()
        properties = _properties(device)
        grain = ctypes.c_size_t()
        asked = driver.cuMemGetAllocationGranularity(
            ctypes.byref(grain), ctypes.byref(properties), 0
        )
        _check(asked, "cuMemGetAllocationGranularity")
        whole = max(1, -(-size // grain.value)) * grain.value
        handle = ctypes.c_uint64()
        zero = ctypes.c_uint64(0)
        made = driver.cuMemCreate(
            ctypes.byref(handle), ctypes.c_size_t(whole), ctypes.byref(properties), zero
        )
        _check(made, "cuMemCreate")
        fd = ctypes.c_int(-1)
        exported = driver.cuMemExportToShareableHandle(ctypes.byref(fd), handle, _POSIX_FD, zero)
        _check(exported, "cuMemExportToShareableHandle")
        address = _map(driver, handle, whole, device)
        _check(driver.cuMemRelease(handle), "cuMemRelease")  # the mapping keeps it
        return cls(fd.value, address, whole)

    @classmethod
    def adopt(cls, fd: int, size: int, device: int = 0) -> Self:
        """Map what another process exported."""
        driver = _driver()
        handle = ctypes.c_uint64()
        imported = driver.cuMemImportFromShareableHandle(
            ctypes.byref(handle), ctypes.c_void_p(fd), _POSIX_FD
        )
        _check(imported, "cuMemImportFromShareableHandle")
        return cls(fd, _map(driver, handle, size, device), size)

    def view(self, node: TensorNode) -> torch.Tensor:
        """The tensor that lies at the node's offset."""
        return typed_view(self.bytes, node)

    def close(self) -> None:
        """Unmap the memory and close the descriptor."""
        torch.cuda.synchronize()
        driver = _driver()
        self.bytes = torch.empty(0, dtype=torch.uint8, device="cuda")
        width = ctypes.c_size_t(self.size)
        _check(driver.cuMemUnmap(ctypes.c_uint64(self.address), width), "cuMemUnmap")
        freed = driver.cuMemAddressFree(ctypes.c_uint64(self.address), width)
        _check(freed, "cuMemAddressFree")
        os.close(self.fd)


def typed_view(raw: torch.Tensor, node: TensorNode) -> torch.Tensor:
    """The tensor that lies at the node's offset in raw device bytes, without a copy."""
    if node.span == 0 or node.offset is None:
        return torch.empty(node.shape, dtype=DTYPES[node.dtype], device="cuda")
    part = raw[node.offset : node.offset + node.reach]
    return part.view(DTYPES[node.dtype]).as_strided(node.shape, node.stride)
