"""Passes compiled files from a submission's first candidate to its later ones.

The first candidate of an evaluation sees only public inputs, so its files cannot leak a secret one.
The judge treats them as opaque bytes; a later candidate unpacks them inside its own sandbox.
"""

import fcntl
import mmap
import os
import tarfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

FOLDER = ".builds"
"""A folder in the candidate's home."""
_MTIME_KEY = "PODIUM.mtime_ns"
_FIXED_SIZE = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW
_READ_ONLY = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SEAL


_COMPILE_THREADS = min(4, len(os.sched_getaffinity(0)))
"""The number of torch.compile's processes. Its default of one per core exceeds a candidate's limit
on processes on a machine with 32 cores, and there are only one or two kernels to compile."""


def environment(home: Path) -> dict[str, str]:
    """Environment variables that put compilers' caches into `FOLDER` and limit their threads."""
    folder = home / FOLDER
    return {
        "TRITON_CACHE_DIR": str(folder / "triton"),
        "TRITON_CACHE_AUTOTUNING": "1",
        "TORCH_EXTENSIONS_DIR": str(folder / "extensions"),
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"),
        "TORCHINDUCTOR_COMPILE_THREADS": str(_COMPILE_THREADS),
        "OPENBLAS_NUM_THREADS": "1",  # otherwise every import of numpy starts a thread per core
        "CUDA_CACHE_PATH": str(folder / "cuda"),
    }


class Builds:
    """The judge's file for compiled code: writable for the first candidate, then read-only."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.packed = False
        self.fd = self._create_file()

    def _create_file(self) -> int:
        fd = os.memfd_create("builds", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(fd, self.size)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, _FIXED_SIZE)
        return fd

    def seal(self) -> bool:
        """Make the file read-only; if a process can still write, replace it and return False."""
        try:
            fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, _READ_ONLY)
        except OSError:
            os.close(self.fd)
            self.packed = False
            self.fd = self._create_file()
            fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, _READ_ONLY)
            return False
        return True

    def close(self) -> None:
        """Close the file."""
        os.close(self.fd)


def adopt(fd: int, home: Path, *, packed: bool) -> None:
    """Unpack the files if there are any, and close a file that later candidates get too.

    All of them share the position and the times of a sealed file, and any of them could set both.
    Only the first candidate keeps its file, to pack.
    """
    if packed:
        with suppress(Exception):  # without the files it compiles again
            unpack(fd, home)
    if fcntl.fcntl(fd, fcntl.F_GET_SEALS) & fcntl.F_SEAL_WRITE:
        os.close(fd)


def pack(home: Path, fd: int) -> None:
    """Pack the compilers' files into `fd`; OSError if they do not fit."""
    with os.fdopen(os.dup(fd), "wb") as file, tarfile.open(fileobj=file, mode="w") as archive:
        for path in _files(home / FOLDER):
            entry = archive.gettarinfo(path, str(path.relative_to(home)))
            # Build tools compare file times in nanoseconds, but tar stores coarser ones.
            entry.pax_headers = {_MTIME_KEY: str(path.stat().st_mtime_ns)}
            with path.open("rb") as content:
                archive.addfile(entry, content)


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            yield path


def unpack(fd: int, home: Path) -> None:
    """Unpack the files, up to the first entry that is unreadable or outside of the folder.

    The bytes are untrusted, so any exception of tarfile may be raised.
    """
    # The file is mapped, because candidates that start in parallel share the descriptor's position.
    # The mapping is private, because older Linux kernels refuse a shared one of a sealed file.
    with (
        mmap.mmap(fd, 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ) as content,
        tarfile.open(fileobj=content, mode="r:") as archive,
    ):
        for entry in archive:
            safe_entry = tarfile.data_filter(entry, str(home))
            archive.extract(safe_entry, home, filter="data")
            mtime_ns = int(entry.pax_headers.get(_MTIME_KEY, "0"))
            os.utime(home / safe_entry.name, ns=(mtime_ns, mtime_ns))
