"""What a warm process has imported for kernels on a GPU."""

from contextlib import suppress


def warm_up() -> None:
    """Import Triton where it is installed, in a version that has what is asked of it.

    Nothing here may begin to use CUDA, which a forked process cannot take over; torch's
    `cpp_extension` does when it is imported.
    """
    with suppress(ImportError):
        from triton.runtime.cache import triton_key  # noqa: PLC0415 - not every machine has it

        triton_key()  # a hash of all of Triton's files, kept by the process
