"""What the warm server imports and prepares for kernels on a GPU."""

import os
import tempfile
from contextlib import suppress

import torch

from runners.harness.gpu.nvml import first_gpu

_CAPABILITIES = (75, 80, 86, 89, 90, 100)
"""Compute capabilities of the known GPU types, for each of which Triton queries its assembler."""


def warm_up() -> None:
    """Import Triton if it is installed, and do once what it would do in every candidate.

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


def have_one_copy_queue() -> None:
    """Give this process's future context only one copy queue, so that it starts and ends sooner.

    The driver creates and destroys contexts one at a time. Most of that time is for their hardware
    queues, above all those for copies. On an H200 seven contexts at once start in 0.60 s instead of
    0.87 s and end in 0.26 s instead of 0.39 s. Fewer kernel queues would save more, but would slow
    down kernels that use eight streams.
    """
    os.putenv("CUDA_DEVICE_MAX_COPY_CONNECTIONS", "1")


def make_context() -> None:
    """Create the CUDA context, which takes 0.1 s; errors are ignored and appear at the next use."""
    have_one_copy_queue()
    with suppress(RuntimeError, AssertionError):
        torch.zeros(1, dtype=torch.uint8, device="cuda").fill_(1)
        first_gpu()
