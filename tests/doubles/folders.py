"""The folder in which the databases of tests are created."""

import shutil
from functools import cache
from pathlib import Path

_MEMORY = Path("/dev/shm")  # noqa: S108 - folders within it get random names
_ROOM = 4 << 30


@cache
def of_databases() -> Path | None:
    """A file system in memory if it has enough room; None for the default folder.

    Each database is hundreds of files, made and deleted within seconds, and ext4 passes over every
    inode that was deleted just now when it makes another: that took half of all processor time.
    """
    if _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > _ROOM:
        return _MEMORY
    return None
