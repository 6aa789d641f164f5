"""What a submission compiled, handed on from its first candidate to the later ones.

The first candidate of an evaluation sees public inputs alone, so nothing that it leaves can tell
of a secret one. What it left is bytes to the judge, which never looks into them: a later candidate
unpacks them inside its own sandbox.
"""

import fcntl
import mmap
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path

FOLDER = ".builds"
"""Beneath the candidate's home."""
_TIME = "PODIUM.mtime_ns"
_FIXED = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW
_READ_ONLY = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SEAL


_COMPILE_THREADS = min(4, len(os.sched_getaffinity(0)))
"""Processes in which torch.compile compiles: one a core, as it would have them, are too many for a
candidate's limit where there are 32 cores, and a kernel or two are all that there is to compile."""


def environment(home: Path) -> dict[str, str]:
    """Where compilers keep what they made, so that all of it can be found; and how they compile."""
    folder = home / FOLDER
    return {
        "TRITON_CACHE_DIR": str(folder / "triton"),
        "TRITON_CACHE_AUTOTUNING": "1",
        "TORCH_EXTENSIONS_DIR": str(folder / "extensions"),
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"),
        "TORCHINDUCTOR_COMPILE_THREADS": str(_COMPILE_THREADS),
        "OPENBLAS_NUM_THREADS": "1",  # else importing numpy starts one a core, in each of them
        "CUDA_CACHE_PATH": str(folder / "cuda"),
    }


class Builds:
    """The judge's hold on the packed files: open for the first candidate, then read-only."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.packed = False
        self.fd = self._make()

    def _make(self) -> int:
        fd = os.memfd_create("builds", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(fd, self.size)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, _FIXED)
        return fd

    def seal(self) -> bool:
        """Let nobody write any more; False when somebody still could: it is another file then."""
        try:
            fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, _READ_ONLY)
        except OSError:
            os.close(self.fd)
            self.packed = False
            self.fd = self._make()
            fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, _READ_ONLY)
            return False
        return True

    def close(self) -> None:
        """Let go of the files."""
        os.close(self.fd)


def pack(home: Path, fd: int) -> None:
    """Write what compilers left into the file; OSError when it does not hold them."""
    with os.fdopen(os.dup(fd), "wb") as file, tarfile.open(fileobj=file, mode="w") as archive:
        for path in _files(home / FOLDER):
            entry = archive.gettarinfo(path, str(path.relative_to(home)))
            # Build tools compare times to the nanosecond, of which the format keeps less.
            entry.pax_headers = {_TIME: str(path.stat().st_mtime_ns)}
            with path.open("rb") as content:
                archive.addfile(entry, content)


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            yield path


def unpack(fd: int, home: Path) -> None:
    """Lay out what was packed, up to the first part that cannot be read or lies elsewhere.

    Whatever tarfile raises at bytes that somebody else made may come out of it.
    """
    # Mapped, since candidates that start beside each other share the descriptor's position; and
    # privately, since older kernels refuse to share what nobody may write.
    with (
        mmap.mmap(fd, 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ) as content,
        tarfile.open(fileobj=content, mode="r:") as archive,
    ):
        for entry in archive:
            inside = tarfile.data_filter(entry, str(home))
            archive.extract(inside, home, filter="data")
            when = int(entry.pax_headers.get(_TIME, "0"))
            os.utime(home / inside.name, ns=(when, when))
