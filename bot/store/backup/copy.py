"""Copies tables out of a database into an archive, and back."""

import re
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import IO

from bot.domain.errors import SetupError, UserError
from bot.domain.records import BackupContents
from bot.store.backup import archive
from bot.store.errors import where
from bot.store.migrate import RECORD as RECORD_TABLE
from bot.store.migrate import (
    Connection,
    Migration,
    apply,
    connected,
    migration_lock,
    migrations_folder,
    read_migrations,
)
from bot.store.postgres.database import query

STATEMENT_S = 3600.0
"""The time limit for one table, in seconds."""
SETTINGS = {"client_connection_check_interval": "1s"}
"""How often Postgres checks whether this process still runs; if not, it releases the locks."""
RECORD = "schema_migrations"
"""Its rows are in the manifest: they determine which tables there are."""
EMPTIED = frozenset({"interactions", "questions", "unsent_outcomes"})
"""Tables backed up without rows: they contain secrets, and requests that must not be repeated."""


async def dump(dsn: str, target: Path | IO[bytes], podium: str) -> BackupContents:
    """Back up a database, which may be in use; `podium` is this program's version.

    UserError when the file exists or there is nothing to back up, SetupError when the database
    fails.
    """
    with archive.created(target) if isinstance(target, Path) else archive.streamed(target) as file:
        async with (
            connected(dsn, "backing up", STATEMENT_S, SETTINGS) as connection,
            connection.transaction(isolation="repeatable_read", readonly=True),
        ):
            manifest = await _write(connection, file, podium)
        file.finish(manifest)
    return manifest.contents


async def _write(
    connection: Connection, file: archive.BackupWriter, podium: str
) -> archive.Manifest:
    columns = await tables(connection)
    if RECORD not in columns:
        raise UserError("empty", "there is nothing to back up: the database has no Podium in it")
    # Locked at once: a migration between two tables would change the later one.
    await connection.execute(await connection.fetchval(query("backup.lock")))
    migrations = await connection.fetch(query("backup.migrations"))
    names = sorted(columns.keys() - {RECORD})
    return archive.Manifest(
        made_at=datetime.now(UTC),
        podium=podium,
        migrations=tuple(archive.AppliedMigration(**dict(row)) for row in migrations),
        tables=tuple([await _table(connection, file, name, columns[name]) for name in names]),
        sequences={
            row["name"]: row["value"] for row in await connection.fetch(query("backup.sequences"))
        },
    )


async def tables(connection: Connection) -> dict[str, tuple[str, ...]]:
    """Return the tables, each with its columns in order."""
    found = await connection.fetch(query("backup.tables"))
    return {row["name"]: tuple(row["columns"]) for row in found}


async def _table(
    connection: Connection, file: archive.BackupWriter, name: str, columns: tuple[str, ...]
) -> archive.TableDump:
    with file.table(name) as text:
        if name in EMPTIED:
            status = "COPY 0"
        else:
            status = await connection.copy_from_table(
                name, columns=columns, output=text.write, format="text", timeout=STATEMENT_S
            )
    return archive.TableDump(name=name, columns=columns, rows=rows_in(status), sha256=text.sha256)


def rows_in(status: str) -> int:
    """Return the number in a COPY's status: `COPY 17`."""
    return int(status.rpartition(" ")[2])


_CREATED = re.compile(r"^create (table|function|sequence) (?:if not exists )?(\w+)", re.MULTILINE)
_TEMPORARY = frozenset({RECORD, "workers"})
"""Tables whose rows do not count as data: live workers register again."""


async def load(dsn: str, source: Path | IO[bytes], *, force: bool = False) -> BackupContents:
    """Restore a backup and apply the migrations that it is missing.

    UserError when the file is not a complete backup, or the database is not empty: `force` empties
    it. SetupError when the database fails or a Podium process uses it. After an error, or a kill at
    any time, nothing has changed.
    """
    known = read_migrations(migrations_folder())
    with archive.opened(source) as backup:
        count = _migration_count(backup.manifest, known)
        async with (
            connected(dsn, "restoring", STATEMENT_S, SETTINGS) as connection,
            migration_lock(connection),
            connection.transaction(),
        ):
            await _remove_existing(connection, where(dsn), force=force)
            await connection.execute(RECORD_TABLE)
            for migration in known[:count]:
                await apply(connection, migration)
            await _fill(connection, backup)
            for migration in known[count:]:
                await apply(connection, migration)
            await connection.execute("analyze")
        return backup.manifest.contents


def _migration_count(manifest: archive.Manifest, known: Sequence[Migration]) -> int:
    """Return how many migrations the backup has; UserError unless they are the first known ones."""
    known_hashes = [(each.number, each.sha256) for each in known]
    applied = [(each.number, each.sha256) for each in manifest.migrations]
    if applied != known_hashes[: len(applied)]:
        raise UserError(
            "new-backup",
            f"the backup was made by Podium {manifest.podium or 'of another version'}, whose "
            f"{len(applied)} migrations are not the first of this version's {len(known_hashes)}; "
            "install that Podium or a newer one",
        )
    return len(applied)


async def _remove_existing(connection: Connection, address: str, *, force: bool) -> None:
    """Delete what exists, if that is allowed."""
    existing = await tables(connection)
    foreign = sorted(existing.keys() - _created_names()["table"] - {RECORD})
    if foreign:
        raise UserError(
            "not-empty",
            f"{address} has tables that are not Podium's ({', '.join(foreign[:5])}); "
            "restore into a database of its own",
        )
    users = await connection.fetchval(query("backup.users"))
    if users:
        raise SetupError(f"a Podium uses {address} ({users} connections); stop it first")
    non_empty = [name for name in sorted(existing) if await _has_rows(connection, name)]
    if non_empty and not force:
        raise UserError(
            "not-empty",
            f"{address} is not empty: {', '.join(non_empty[:5])} have rows; restore into an empty "
            "one, or remove everything in it with --force",
        )
    for kind, names in _created_names().items():
        for name in sorted(names):
            await connection.execute(f"drop {kind} if exists {name} cascade")
    await connection.execute(f"drop table if exists {RECORD}")


async def _has_rows(connection: Connection, table: str) -> bool:
    if table in _TEMPORARY:
        return False
    # The name is one of `_created_names`, from the migrations.
    return bool(await connection.fetchval(f"select exists (select from {table})"))  # noqa: S608


@cache
def _created_names() -> dict[str, frozenset[str]]:
    """Return what the migrations create, by kind."""
    text = "\n".join(each.sql for each in read_migrations(migrations_folder()))
    found = _CREATED.findall(text)
    return {
        kind: frozenset(name for created, name in found if created == kind)
        for kind in ("table", "function", "sequence")
    }


async def _fill(connection: Connection, backup: archive.BackupReader) -> None:
    """Copy the rows in; foreign keys are checked once all are there."""
    manifest = backup.manifest
    existing = await tables(connection)
    backed_up = {each.name: frozenset(each.columns) for each in manifest.tables}
    if backed_up != {name: frozenset(existing[name]) for name in existing.keys() - {RECORD}}:
        raise UserError("bad-backup", "the backup does not have the tables of its own migrations")
    keys = await connection.fetch(query("backup.foreign_keys"))
    for key in keys:
        await connection.execute(key["without"])
    await connection.execute(query("backup.disable_triggers"))
    for table in manifest.tables:
        await _copy(connection, backup, table)
    for name, value in manifest.sequences.items():
        await connection.execute(query("backup.set_sequence"), name, value)
    await connection.execute(query("backup.enable_triggers"))
    for key in keys:
        await connection.execute(key["again"])


async def _copy(
    connection: Connection, backup: archive.BackupReader, table: archive.TableDump
) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for chunk in backup.chunks(table.name):
            yield chunk

    status = await connection.copy_to_table(
        table.name, columns=table.columns, source=chunks(), format="text", timeout=STATEMENT_S
    )
    rows = rows_in(status)
    if rows != table.rows:
        raise UserError("bad-backup", f"table {table.name} has {rows} rows, not {table.rows}")
