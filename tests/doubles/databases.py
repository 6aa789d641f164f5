"""Migrated databases in temporary folders: each one starts as a copy of the first."""

import asyncio
import atexit
import os
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from pathlib import Path

from bot.store.embedded import open_database
from tests.doubles import folders, launcher

COPY_LIMIT_S = 60


@asynccontextmanager
async def fresh_database() -> AsyncIterator[str]:
    """The address of an empty database, which is deleted at the end of the block."""
    with temporary_folder("podium-database-") as folder:
        await asyncio.to_thread(copy_migrated, folder / "data")
        async with open_database(folder / "data") as database:
            yield database.dsn


@contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """A folder that the server's account can enter, unlike pytest's own when run as root."""
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=folders.of_databases()))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def copy_migrated(data_dir: Path) -> None:
    """Create a data folder with an empty migrated database; the real start has its own tests."""
    subprocess.run(["cp", "-a", str(_migrated()), str(data_dir)], check=True, timeout=COPY_LIMIT_S)


@cache
def _migrated() -> Path:
    """The data folder that is copied; each test process creates it once."""
    folder = Path(tempfile.mkdtemp(prefix="podium-migrated-", dir=folders.of_databases()))
    atexit.register(shutil.rmtree, folder)
    folder.chmod(0o755)
    environment = {"PATH": os.environ["PATH"], "PODIUM_DATA_DIR": str(folder / "data")}
    made = launcher.run(["migrate"], environment, launcher.ROOT, COPY_LIMIT_S)
    assert made.returncode == 0, made.stderr
    return folder / "data"
