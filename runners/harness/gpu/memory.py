"""Memory that two processes share: device memory through the driver API, or pinned host memory.

Each allocation holds exactly one buffer, so mapping it shares nothing else. Its file descriptor
works across user, mount and network namespaces, in which legacy IPC handles may fail. Source of the
function and structure layouts: CUDA driver API, chapter "Virtual Memory Management".

Pinned host memory is for machines that refuse to share device memory. Both sides access it through
the GPU, and the candidate copies its input to the device first. `OutputPool` lets torch allocate
from shared memory, so that an output needs no copy.
"""

import ctypes
import functools
import mmap
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, ClassVar, Self

import torch

from runners.harness.protocol import arena, channel, values


class DriverError(Exception):
    """A call of the CUDA driver failed; `reason` is CUDA's name and text of the error."""

    def __init__(self, call: str, reason: str) -> None:
        super().__init__(f"{call} failed: {reason}")
        self.reason = reason


@functools.cache
def cuda_driver() -> ctypes.CDLL:
    """Return the driver's library."""
    return ctypes.CDLL("libcuda.so.1")


@contextmanager
def ignoring_broken_context() -> Iterator[None]:
    """Ignore CUDA errors of the block if the context is broken; a broken one frees its memory."""
    try:
        yield
    except (DriverError, torch.AcceleratorError):
        if broken_by() is None:
            raise


@contextmanager
def ended_on_failure(
    end_candidate: Callable[[], None], abort: Callable[[], None]
) -> Iterator[None]:
    """If the block fails, end the candidate and then its windows.

    A living candidate could take back the words that end them.
    """
    try:
        yield
    except BaseException:
        end_candidate()
        with ignoring_broken_context():
            abort()
        raise


@contextmanager
def usual_algorithms() -> Iterator[None]:
    """Let torch use algorithms that are not deterministic in this block.

    A task's code may forbid them. A copy by index then takes about twenty launches, which lengthens
    the judge's windows, and a train needs more than the driver can queue.
    """
    mode = torch.get_deterministic_debug_mode()
    torch.set_deterministic_debug_mode(0)
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(mode)


def check(status: int, call: str) -> None:
    """Raise DriverError if the status is not success."""
    if status != 0:
        raise DriverError(call, reason_of(status))


def call_driver(name: str, *arguments: object) -> None:
    """Call a function of the driver; DriverError if it fails."""
    check(getattr(cuda_driver(), name)(*arguments), name.removesuffix("_v2"))


def reset_persisting_lines() -> None:
    """Reset the lines of the L2 cache that a process has marked as persisting.

    A GPU without such lines refuses the call, and then nothing has to be done.
    """
    with suppress(DriverError):
        call_driver("cuCtxResetPersistingL2Cache")


def reason_of(status: int) -> str:
    """CUDA's name and text of an error, as in `CUDA_ERROR_INVALID_VALUE (...)`."""
    name, text = ctypes.c_char_p(), ctypes.c_char_p()
    known = cuda_driver().cuGetErrorName(status, ctypes.byref(name)) == 0
    if not known or cuda_driver().cuGetErrorString(status, ctypes.byref(text)) != 0:
        return f"CUDA error {status}"
    return f"{(name.value or b'').decode()} ({(text.value or b'').decode()})"


def broken_by() -> str | None:
    """Synchronize; return the error that broke the current context, or None."""
    status = cuda_driver().cuCtxSynchronize()
    return None if status == 0 else reason_of(status)


def await_word(address: int, value: int, stream: int = 0) -> None:
    """Make a stream (by default the default stream) wait until a word has reached a value.

    Source: CUDA driver API, chapter "Stream Memory Operations"; the comparison is cyclic.
    """
    status = cuda_driver().cuStreamWaitValue32_v2(
        ctypes.c_void_p(stream), ctypes.c_uint64(address), ctypes.c_uint32(value), ctypes.c_uint(0)
    )
    check(status, "cuStreamWaitValue32")


def write_word(address: int, value: int, stream: int = 0) -> None:
    """Make a stream (by default the default stream) write a word after its earlier work."""
    status = cuda_driver().cuStreamWriteValue32_v2(
        ctypes.c_void_p(stream), ctypes.c_uint64(address), ctypes.c_uint32(value), ctypes.c_uint(0)
    )
    check(status, "cuStreamWriteValue32")


def timed_event() -> torch.cuda.Event:
    """Return an event with a time stamp."""
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]


class _Bytes:
    """Raw device memory in the form that `torch.as_tensor` accepts without a copy."""

    def __init__(self, address: int, size: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (size,),
            "typestr": "|u1",
            "data": (address, False),
            "version": 3,
            "strides": None,
        }


def raw_bytes(address: int, size: int) -> torch.Tensor:
    """Device memory as a uint8 tensor, without a copy; the caller must keep the memory mapped."""
    return torch.as_tensor(_Bytes(address, size), device="cuda")


def typed_view(raw: torch.Tensor, node: values.TensorNode) -> torch.Tensor:
    """The tensor at the node's offset in raw device bytes, without a copy."""
    if node.span == 0 or node.offset is None:
        return torch.empty(node.shape, dtype=values.DTYPES[node.dtype], device="cuda")
    part = raw[node.offset : node.offset + node.reach]
    return part.view(values.DTYPES[node.dtype]).as_strided(node.shape, node.stride)


_PINNED_ALLOCATION = 1
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
    properties.type = _PINNED_ALLOCATION
    properties.handle_types = _POSIX_FD
    properties.location = _Location(_ON_DEVICE, device)
    return properties


def _map(handle: ctypes.c_uint64, size: int, device: int) -> int:
    address = ctypes.c_uint64()
    width = ctypes.c_size_t(size)
    zero = ctypes.c_uint64(0)
    call_driver("cuMemAddressReserve", ctypes.byref(address), width, ctypes.c_size_t(0), zero, zero)
    call_driver("cuMemMap", address, width, ctypes.c_size_t(0), handle, zero)
    access = _Access(_Location(_ON_DEVICE, device), _READ_WRITE)
    call_driver("cuMemSetAccess", address, width, ctypes.byref(access), ctypes.c_size_t(1))
    return int(address.value)


class DeviceBuffer:
    """Bytes on the GPU, shared between two processes by a file descriptor."""

    transport: ClassVar[channel.Transport] = "vmm"

    def __init__(self, fd: int, address: int, size: int) -> None:
        self.fd = fd
        self.address = address
        self.size = size
        self.bytes = raw_bytes(address, size)

    @classmethod
    def create(cls, size: int, device: int = 0) -> Self:
        """Allocate at least `size` bytes and export them."""
        properties = ctypes.byref(_properties(device))
        granularity = ctypes.c_size_t()
        call_driver("cuMemGetAllocationGranularity", ctypes.byref(granularity), properties, 0)
        whole = max(1, -(-size // granularity.value)) * granularity.value
        handle = ctypes.c_uint64()
        zero = ctypes.c_uint64(0)
        call_driver("cuMemCreate", ctypes.byref(handle), ctypes.c_size_t(whole), properties, zero)
        fd = ctypes.c_int(-1)
        call_driver("cuMemExportToShareableHandle", ctypes.byref(fd), handle, _POSIX_FD, zero)
        address = _map(handle, whole, device)
        call_driver("cuMemRelease", handle)  # the mapping keeps the memory
        return cls(fd.value, address, whole)

    @classmethod
    def adopt(cls, fd: int, size: int, device: int = 0) -> Self:
        """Map a buffer that another process exported."""
        handle = ctypes.c_uint64()
        exported = ctypes.c_void_p(fd)
        call_driver("cuMemImportFromShareableHandle", ctypes.byref(handle), exported, _POSIX_FD)
        return cls(fd, _map(handle, size, device), size)

    def close(self) -> None:
        """Unmap the memory and close the descriptor."""
        torch.cuda.synchronize()
        self.bytes = torch.empty(0, dtype=torch.uint8, device="cuda")
        address, width = ctypes.c_uint64(self.address), ctypes.c_size_t(self.size)
        call_driver("cuMemUnmap", address, width)
        call_driver("cuMemAddressFree", address, width)
        os.close(self.fd)


_DEVICE_MAP = 2


class HostBuffer:
    """Bytes of host memory that the GPU can reach, shared between two processes."""

    transport: ClassVar[channel.Transport] = "pinned-host"

    def __init__(self, fd: int, size: int) -> None:
        self.fd = fd
        self.size = size
        self.memory = mmap.mmap(fd, size)
        self.host = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        host = ctypes.c_void_p(self.host)
        call_driver("cuMemHostRegister_v2", host, ctypes.c_size_t(size), _DEVICE_MAP)
        address = ctypes.c_uint64()
        call_driver("cuMemHostGetDevicePointer_v2", ctypes.byref(address), host, 0)
        self.address = int(address.value)
        self.bytes = raw_bytes(self.address, size)

    @classmethod
    def create(cls, size: int) -> Self:
        """Allocate at least `size` bytes."""
        torch.cuda.current_stream()  # creates the context that registering needs
        whole = -(-max(1, size) // mmap.PAGESIZE) * mmap.PAGESIZE
        return cls(arena.sealed_memory("pinned", whole), whole)

    @classmethod
    def adopt(cls, fd: int, size: int) -> Self:
        """Map a buffer that another process created."""
        torch.cuda.current_stream()
        return cls(fd, size)

    def close(self) -> None:
        """Unregister the memory and close the descriptor; views stay valid in this process."""
        torch.cuda.synchronize()
        call_driver("cuMemHostUnregister", ctypes.c_void_p(self.host))
        os.close(self.fd)


SEGMENT_BYTES = 2 << 20
"""Bytes; the size and address of each segment for torch are multiples of this."""

_ALLOCATE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)
_FREE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)


class Segments:
    """Allocates segments from one block of memory, and from the driver once that is used up."""

    def __init__(self, address: int, size: int, fallback: Callable[[int], int | None]) -> None:
        self.start = self.free = address
        self.end = address + size
        self.fallback = fallback

    def allocate(self, size: int) -> int | None:
        """The address of `size` new bytes; None if there are none."""
        whole = -(-size // SEGMENT_BYTES) * SEGMENT_BYTES
        if self.free + whole > self.end:
            return self.fallback(size)
        self.free += whole
        return self.free - whole

    def owns(self, address: int) -> bool:
        """Whether a segment came from the block, which is never freed."""
        return self.start <= address < self.end


class OutputPool:
    """A torch memory pool that allocates from the judge's memory first."""

    def __init__(self, address: int, size: int) -> None:
        segments = Segments(address, size, _from_driver)

        def allocate(size: int, _device: int, _stream: int | None) -> int | None:
            return segments.allocate(size)

        def free(address: int, _size: int, _device: int, _stream: int | None) -> None:
            if not segments.owns(address):
                cuda_driver().cuMemFree_v2(ctypes.c_uint64(address))

        self.callbacks = (_ALLOCATE(allocate), _FREE(free))  # torch keeps calling them
        pointers = (ctypes.cast(callback, ctypes.c_void_p).value for callback in self.callbacks)
        binding: Any = torch._C  # noqa: SLF001 - the public form needs a compiled library
        self.pool = torch.cuda.MemPool(binding._cuda_customAllocator(*pointers))  # noqa: SLF001

    def used(self) -> AbstractContextManager[None]:
        """Return a context in which this thread's torch allocations come from the pool."""
        return torch.cuda.use_mem_pool(self.pool)


def _from_driver(size: int) -> int | None:
    address = ctypes.c_uint64()
    status = cuda_driver().cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size))
    return address.value if status == 0 else None
