"""What a warm process has imported and made for kernels on a GPU."""

from contextlib import suppress

import torch

from runners.harness.cuda.readings import first_gpu


def warm_up() -> None:
    """Import Triton where it is installed, in a version that has what is asked of it.

    Nothing here may begin to use CUDA, which a forked process cannot take over; torch's
    `cpp_extension` does when it is imported.
    """
    with suppress(ImportError):
        from triton.runtime.cache import triton_key  # noqa: PLC0415 - not every machine has it

        triton_key()  # a hash of all of Triton's files, kept by the process


def make_context() -> None:
    """Begin to use the GPU, which takes a quarter of a second; who needs it tells what fails."""
    with suppress(RuntimeError, AssertionError):
        torch.zeros(1, dtype=torch.uint8, device="cuda").fill_(1)
        first_gpu()
