"""Writes every row of a database into one file, as they were at one moment."""

from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from bot.domain.backup import BackupContents
from bot.domain.errors import UserError
from bot.store.backup.archive import AppliedMigration, Manifest, Table, Writing, created, streamed
from bot.store.backup.connection import STATEMENT_S, Connection, connected
from bot.store.queries import query

RECORD = "schema_migrations"
"""The manifest has its rows: they decide which tables there are."""
EMPTIED = frozenset({"interactions"})
"""Tables of which no row is backed up: secrets, and what must not be done again later."""


async def dump(dsn: str, target: Path | IO[bytes], podium: str) -> BackupContents:
    """Back up a database, which may be in use; `podium` is the version that does it.

    UserError when the file exists or there is nothing to back up, SetupError when the database
    fails.
    """
    with created(target) if isinstance(target, Path) else streamed(target) as file:
        async with (
            connected(dsn, "backing up") as connection,
            connection.transaction(isolation="repeatable_read", readonly=True),
        ):
            manifest = await _written(connection, file, podium)
        file.finish(manifest)
    return manifest.contents


async def _written(connection: Connection, file: Writing, podium: str) -> Manifest:
    columns = await tables(connection)
    if RECORD not in columns:
        raise UserError("empty", "there is nothing to back up: the database has no Podium in it")
    # Locked at once: a migration that came between two tables would change the later one.
    await connection.execute(await connection.fetchval(query("backup.lock")))
    migrations = await connection.fetch(query("backup.migrations"))
    names = sorted(columns.keys() - {RECORD})
    return Manifest(
        made_at=datetime.now(UTC),
        podium=podium,
        migrations=tuple(AppliedMigration(**dict(row)) for row in migrations),
        tables=tuple([await _table(connection, file, name, columns[name]) for name in names]),
        sequences={
            row["name"]: row["value"] for row in await connection.fetch(query("backup.sequences"))
        },
    )


async def tables(connection: Connection) -> dict[str, tuple[str, ...]]:
    """The tables there are, each with its columns in order."""
    found = await connection.fetch(query("backup.tables"))
    return {row["name"]: tuple(row["columns"]) for row in found}


async def _table(
    connection: Connection, file: Writing, name: str, columns: tuple[str, ...]
) -> Table:
    with file.table(name) as text:
        if name in EMPTIED:
            status = "COPY 0"
        else:
            status = await connection.copy_from_table(
                name, columns=columns, output=text.put, format="text", timeout=STATEMENT_S
            )
    return Table(name=name, columns=columns, rows=rows_in(status), sha256=text.sha256)


def rows_in(status: str) -> int:
    """The number in what Postgres says of a COPY: `COPY 17`."""
    return int(status.rpartition(" ")[2])
