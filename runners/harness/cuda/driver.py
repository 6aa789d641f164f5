"""The CUDA driver through ctypes, and raw device memory as tensors."""

import ctypes
import functools
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from runners.harness.values import DTYPES, TensorNode


class DriverError(Exception):
    """A call of the CUDA driver failed; `reason` is CUDA's own name for it."""

    def __init__(self, call: str, reason: str) -> None:
        super().__init__(f"{call} failed: {reason}")
        self.reason = reason


@functools.cache
def cuda_driver() -> ctypes.CDLL:
    """The driver's library, which every process with a CUDA context has loaded."""
    return ctypes.CDLL("libcuda.so.1")


@contextmanager
def letting_go() -> Iterator[None]:
    """What is let go of in a context that is broken goes with this process: it is no error."""
    try:
        yield
    except (DriverError, torch.AcceleratorError):
        if broken_by() is None:
            raise


def check(status: int, call: str) -> None:
    """Raise DriverError when a call did not succeed."""
    if status != 0:
        raise DriverError(call, reason_of(status))


def reason_of(status: int) -> str:
    """CUDA's name for an error, and what it means, as in `CUDA_ERROR_INVALID_VALUE (...)`."""
    name, words = ctypes.c_char_p(), ctypes.c_char_p()
    known = cuda_driver().cuGetErrorName(status, ctypes.byref(name)) == 0
    if not known or cuda_driver().cuGetErrorString(status, ctypes.byref(words)) != 0:
        return f"CUDA error {status}"
    return f"{(name.value or b'').decode()} ({(words.value or b'').decode()})"


def broken_by() -> str | None:
    """What the present context was broken by; None while it is whole. Waits for its work."""
    status = cuda_driver().cuCtxSynchronize()
    return None if status == 0 else reason_of(status)


def await_word(address: int, value: int) -> None:
    """Have the default stream wait, on the device, until a word of memory has reached a value.

    Source: CUDA driver API, chapter "Stream Memory Operations"; the comparison is cyclic.
    """
    waiting = cuda_driver().cuStreamWaitValue32_v2(
        ctypes.c_void_p(0), ctypes.c_uint64(address), ctypes.c_uint32(value), ctypes.c_uint(0)
    )
    check(waiting, "cuStreamWaitValue32")


def write_word(address: int, value: int, stream: int = 0) -> None:
    """Have a stream, by default the default one, write a word when its earlier work is done."""
    written = cuda_driver().cuStreamWriteValue32_v2(
        ctypes.c_void_p(stream), ctypes.c_uint64(address), ctypes.c_uint32(value), ctypes.c_uint(0)
    )
    check(written, "cuStreamWriteValue32")


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


def raw_bytes(address: int, size: int) -> torch.Tensor:
    """Device memory as a tensor of bytes, without a copy; the caller keeps it mapped."""
    return torch.as_tensor(_Bytes(address, size), device="cuda")


def typed_view(raw: torch.Tensor, node: TensorNode) -> torch.Tensor:
    """The tensor that lies at the node's offset in raw device bytes, without a copy."""
    if node.span == 0 or node.offset is None:
        return torch.empty(node.shape, dtype=DTYPES[node.dtype], device="cuda")
    part = raw[node.offset : node.offset + node.reach]
    return part.view(DTYPES[node.dtype]).as_strided(node.shape, node.stride)
