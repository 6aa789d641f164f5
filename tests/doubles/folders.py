"""The folder in which the databases of tests are created."""

import shutil
from functools import cache
from pathlib import Path

_MEMORY = Path("/dev/shm")  # noqa: S108 - folders within it get random names
_ROOM = 4 << 30


@cache
def of_databases() -> Path | None:
    """A folder in memory if it has enough space; None for the default folder.

    A database has hundreds of files, which are created and deleted within seconds. To create a
    file, ext4 skips every inode that was deleted just before, which took half of all CPU time.
    """
    if _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > _ROOM:
        return _MEMORY
    return None
