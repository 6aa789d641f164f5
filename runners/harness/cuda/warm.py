"""What a warm process has imported for kernels on a GPU."""

from contextlib import suppress


def warm_up() -> None:
    """Import Triton where it is installed.

    Nothing here may begin to use CUDA, which a forked process cannot take over; torch's
    `cpp_extension` does when it is imported.
    """
    with suppress(ImportError):
        import triton.runtime.cache  # noqa: PLC0415 - not every machine has it

        triton.runtime.cache.triton_key()  # a hash of all of Triton's files, kept by the process
