"""Device code in the candidate's CUDA context: loaded once, launched with numbers from the judge.

Source: CUDA driver API, chapters "Module Management" and "Execution Control".
"""

import ctypes
from collections.abc import Sequence

import torch

from runners.contract.launch import LaunchNumbers
from runners.contract.parameters import BufferArgument, LaunchScalar
from runners.harness.gpu.memory import call_driver, check, cuda_driver

_MAX_DYNAMIC_SHARED = 8
"""CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES."""


class ReadyLaunch:
    """One launch with packed arguments, ready to be passed to the driver."""

    def __init__(
        self,
        numbers: LaunchNumbers,
        inputs: Sequence[torch.Tensor],
        outputs: Sequence[torch.Tensor],
        returned: tuple[torch.Tensor, ...] = (),
    ) -> None:
        self.grid, self.block, self.shared = numbers.grid, numbers.block, numbers.shared
        buffers = {"in": inputs, "out": outputs}
        packed = [_packed(argument, buffers) for argument in numbers.arguments]
        self.values = [ctypes.create_string_buffer(data, len(data)) for data in packed]
        self.pointers = (ctypes.c_void_p * len(packed))(*map(ctypes.addressof, self.values))
        self.returned = returned
        """Outputs that must still be copied to where the judge reads them; () if there are none."""


def _packed(
    argument: BufferArgument | LaunchScalar, buffers: dict[str, Sequence[torch.Tensor]]
) -> bytes:
    if isinstance(argument, LaunchScalar):
        return bytes.fromhex(argument.data)
    return buffers[argument.kind][argument.index].data_ptr().to_bytes(8, "little")


class DeviceCode:
    """One kernel of a cubin, callable in the CUDA context in which it was created."""

    def __init__(self, cubin: bytes, entry: str) -> None:
        self.module, self.function = ctypes.c_void_p(), ctypes.c_void_p()
        self.shared = 0
        """The largest dynamic shared memory that a launch has requested so far, in bytes."""
        function = ctypes.byref(self.function)
        call_driver("cuModuleLoadData", ctypes.byref(self.module), cubin)
        call_driver("cuModuleGetFunction", function, self.module, entry.encode())

    def __call__(self, launch: ReadyLaunch) -> tuple[torch.Tensor, ...]:
        """Launch it on the default stream; DriverError if the driver refuses."""
        if launch.shared > self.shared:
            self._allow(launch.shared)
        sizes = [ctypes.c_uint(size) for size in (*launch.grid, *launch.block, launch.shared)]
        default_stream, nothing = ctypes.c_void_p(0), ctypes.c_void_p(0)
        status = cuda_driver().cuLaunchKernel(
            self.function, *sizes, default_stream, launch.pointers, nothing
        )
        check(status, "cuLaunchKernel")
        return launch.returned

    def _allow(self, shared: int) -> None:
        """Request more than 48 KiB of dynamic shared memory, which needs an explicit opt-in."""
        status = cuda_driver().cuFuncSetAttribute(
            self.function, ctypes.c_int(_MAX_DYNAMIC_SHARED), ctypes.c_int(shared)
        )
        check(status, f"requesting {shared} bytes of dynamic shared memory")
        self.shared = shared
