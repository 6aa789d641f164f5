"""A migrated Postgres in a temporary folder, for scripts that run outside pytest."""

import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from bot.store.embedded import open_database
from bot.store.migrate import migrate


@asynccontextmanager
async def fresh_database() -> AsyncIterator[str]:
    """The address of an empty database, which is deleted at the end of the block."""
    with _open_folder() as folder:
        async with open_database(folder / "data") as database:
            await migrate(database.dsn)
            yield database.dsn


@contextmanager
def _open_folder() -> Iterator[Path]:
    """A folder that the server's account can enter, for every user that runs this."""
    with tempfile.TemporaryDirectory(prefix="podium-database-") as name:
        folder = Path(name)
        folder.chmod(0o711)
        yield folder
