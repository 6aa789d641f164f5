"""A migrated Postgres of our own in a temporary folder, for scripts that run outside pytest."""

import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from bot.store.embedded import open_database
from bot.store.migrate import migrate


@asynccontextmanager
async def fresh_database() -> AsyncIterator[str]:
    """The address of an empty database, gone with everything in it at the end."""
    with _open_folder() as folder:
        async with open_database(folder / "data") as database:
            await migrate(database.dsn)
            yield database.dsn


@contextmanager
def _open_folder() -> Iterator[Path]:
    """A folder which the server's account can enter, whoever runs this."""
    with tempfile.TemporaryDirectory(prefix="podium-database-") as name:
        folder = Path(name)
        folder.chmod(0o711)
        yield folder
