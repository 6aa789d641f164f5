"""Saves start-up time on a GPU: early imports, cheap contexts, a driver that stays initialized."""

import ctypes
import functools
import os
import select
import signal
import tempfile
from contextlib import suppress

import torch

from runners.harness.gpu.memory import DriverError, call_driver, cuda_driver
from runners.harness.sandbox import isolate, syscalls

_CAPABILITIES = (75, 80, 86, 89, 90, 100)
"""Compute capabilities of the known GPU types, for each of which Triton queries its assembler."""


def warm_up() -> None:
    """Import Triton if it is installed, and do the work once that each candidate would repeat.

    With Triton 3.6 on an H200 this saves 0.65 s of the 0.84 s of a first call, and 0.2 s in each
    later candidate. Steps that another version does not have are skipped. Nothing here may
    initialize CUDA, which a forked process cannot inherit; importing torch's `cpp_extension` does.
    """
    for step in (_read_files, _import_parts, _query_assembler, _build_driver):
        with suppress(Exception):  # a kernel that needs the step repeats it and shows the error
            step()


def _read_files() -> None:
    """Compute Triton's hash of its own files and its platform key, which the process caches."""
    from triton.runtime import build, cache  # noqa: PLC0415 - may be missing

    cache.triton_key()
    build.platform_key()


def _import_parts() -> None:
    """Import what Triton imports at the first call of a kernel."""
    import triton.experimental.gluon.nvidia  # noqa: F401, PLC0415 - likewise


def _query_assembler() -> None:
    from triton.backends.nvidia.compiler import get_ptxas_version  # noqa: PLC0415 - likewise

    for capability in _CAPABILITIES:
        get_ptxas_version(capability)


def _build_driver() -> None:
    """Compile and load Triton's driver module, one per process."""
    from triton import knobs  # noqa: PLC0415 - likewise
    from triton.backends.nvidia.driver import CudaUtils  # noqa: PLC0415 - likewise

    with tempfile.TemporaryDirectory() as folder, knobs.cache.scope():
        knobs.cache.dir = folder  # a new folder, in which no other code can have been planted
        CudaUtils()
    CudaUtils.__init__ = lambda _: None  # already done, so candidates do not repeat it


def limit_copy_queues() -> None:
    """Give this process's future context one copy queue, because it then starts and ends faster.

    The driver creates and destroys contexts one at a time. Most of that time is for their hardware
    queues, above all the copy queues. On an H200, seven contexts at once start in 0.60 s instead of
    0.87 s and end in 0.26 s instead of 0.39 s. Fewer kernel queues would save more, but would slow
    down kernels that use eight streams.
    """
    os.putenv("CUDA_DEVICE_MAX_COPY_CONNECTIONS", "1")


RETRY_S = 0.05
"""The pause before another attempt to create a context."""


def make_context() -> None:
    """Create the CUDA context, and load the calibration kernel's CUDA kernels before any window.

    While another candidate of the submission takes all of the GPU's memory, try again; the judge
    ends this process if that takes too long.
    """
    torch.cuda.init()  # type: ignore[no-untyped-call]
    while not _can_compute():
        select.select([], [], [], RETRY_S)


def _can_compute() -> bool:
    """Use each kernel; return whether there was enough memory for the context and for them."""
    try:
        numbers = torch.zeros(1, dtype=torch.int32, device="cuda")
        numbers.view(torch.uint8).fill_(1)
        numbers.amax()
        torch.cuda.synchronize()
    except (torch.AcceleratorError, torch.OutOfMemoryError) as error:
        if "out of memory" not in str(error):
            raise
        return False
    return True


_PTX = b".version 6.3\n.target sm_75\n.address_size 64\n.visible .entry none()\n{\n  ret;\n}\n\0"
_INPUT_PTX = 1
"""CU_JIT_INPUT_PTX."""


@functools.cache
def _empty_module() -> bytes:
    """Return a module with an empty kernel, compiled for the GPU of the current context."""
    link, cubin, size = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t()
    call_driver("cuLinkCreate_v2", 0, None, None, ctypes.byref(link))
    ptx = (_INPUT_PTX, _PTX, ctypes.c_size_t(len(_PTX)), None, 0, None, None)
    call_driver("cuLinkAddData_v2", link, *ptx)
    call_driver("cuLinkComplete", link, ctypes.byref(cubin), ctypes.byref(size))
    found = ctypes.string_at(cubin, size.value)
    call_driver("cuLinkDestroy", link)
    return found


def load_empty_module() -> None:
    """Load a module and unload it, so that a call's switches of contexts are as cheap as they get.

    Once a module has been loaded, they take less time until a kernel starts in a stream that waits
    for nothing: on an H200, 3.5 us less in every call of a train. A submission that loads a module
    and starts no kernel would gain that over calibration. Without memory for it nothing is done.
    Source: CUDA driver API, chapter "Module Management"; the effect is not documented.
    """
    module = ctypes.c_void_p()
    with suppress(DriverError):
        call_driver("cuModuleLoadData", ctypes.byref(module), _empty_module())
        call_driver("cuModuleUnload", module)


END_S = 10.0
"""How long to wait for the exit of `DriverKeepAlive`, in seconds."""


class DriverKeepAlive:
    """A process that keeps the driver initialized. It is forked before any request.

    Without it, the driver shuts down when the last process that uses it exits, and starts again for
    the next one. On an H200 that costs 0.09 s before each evaluation and 0.05 s after it. Open
    device files alone do not prevent that. The server cannot use the driver itself, because its
    forks could then not use it. This process ends with its parent. It creates no context, so it
    does not count as computing on the GPU.
    """

    def __init__(self) -> None:
        parent = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                _keep(parent)
            finally:
                os._exit(0)
        self.pidfd = os.pidfd_open(self.pid)

    @property
    def living(self) -> tuple[int, ...]:
        """Its process id; () once it has exited, because the id may then be reused."""
        return () if select.select([self.pidfd], [], [], 0)[0] else (self.pid,)

    def close(self) -> None:
        """Kill it and wait at most `END_S`, because with a broken GPU a process may never exit."""
        if self.living:
            os.kill(self.pid, signal.SIGKILL)
            if select.select([self.pidfd], [], [], END_S)[0]:
                os.waitpid(self.pid, 0)
        os.close(self.pidfd)


def _keep(parent: int) -> None:
    isolate.detach_streams()
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() == parent and cuda_driver().cuInit(0) == 0:
        while True:
            signal.pause()
