"""What a warm process has imported and made for kernels on a GPU."""

import os
import tempfile
from contextlib import suppress

import torch

from runners.harness.gpu.nvml import first_gpu

_CAPABILITIES = (75, 80, 86, 89, 90, 100)
"""Of the GPU types that are known; for each of them Triton asks its assembler who it is."""


def warm_up() -> None:
    """Import Triton where it is installed, and do once what it would do in every candidate.

    Of the 0.84 s of a first call 0.65 s, with Triton 3.6 on an H200, and of those 0.2 s again in
    each later candidate. What another version of it does not have is left out. Nothing here may
    begin to use CUDA, which a forked process cannot take over; torch's `cpp_extension` does when
    it is imported.
    """
    for step in (_read_files, _import_parts, _know_assembler, _build_driver):
        with suppress(Exception):  # a kernel that needs it will do it, or tell what fails
            step()


def _read_files() -> None:
    """A hash of all of Triton's files, and what machine this is, kept by the process."""
    from triton.runtime import build, cache  # noqa: PLC0415 - not every machine has it

    cache.triton_key()
    build.platform_key()


def _import_parts() -> None:
    """What Triton imports at the first call of a kernel."""
    import triton.experimental.gluon.nvidia  # noqa: F401, PLC0415 - likewise


def _know_assembler() -> None:
    from triton.backends.nvidia.compiler import get_ptxas_version  # noqa: PLC0415 - likewise

    for capability in _CAPABILITIES:
        get_ptxas_version(capability)


def _build_driver() -> None:
    """Compile and load Triton's link to the driver, of which a process has one."""
    from triton import knobs  # noqa: PLC0415 - likewise
    from triton.backends.nvidia.driver import CudaUtils  # noqa: PLC0415 - likewise

    with tempfile.TemporaryDirectory() as folder, knobs.cache.scope():
        knobs.cache.dir = folder  # where nobody else can have laid anything that is loaded
        CudaUtils()
    CudaUtils.__init__ = lambda _: None  # it has been: not again in every candidate


def have_one_copy_queue() -> None:
    """Have the context that this process is to make begin and end in two thirds of the time.

    The driver makes and ends one context after the other, and most of that are their queues, those
    for copies above all. On an H200 seven at once need 0.60 s in place of 0.87, and their end 0.26
    in place of 0.39. Fewer queues for kernels save more, and slow kernels that use eight streams.
    """
    os.putenv("CUDA_DEVICE_MAX_COPY_CONNECTIONS", "1")


def make_context() -> None:
    """Begin to use the GPU, which takes a tenth of a second; who needs it tells what fails."""
    have_one_copy_queue()
    with suppress(RuntimeError, AssertionError):
        torch.zeros(1, dtype=torch.uint8, device="cuda").fill_(1)
        first_gpu()
