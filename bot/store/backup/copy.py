"""Puts a backup into a database: all of it in one transaction, or nothing."""

import re
from collections.abc import AsyncIterator, Sequence
from functools import cache
from pathlib import Path
from typing import IO

from bot.domain.backup import BackupContents
from bot.domain.errors import SetupError, UserError
from bot.store.backup.archive import Manifest, Reading, Table, opened
from bot.store.backup.connection import STATEMENT_S, Connection, connected
from bot.store.backup.dumping import RECORD, rows_in, tables
from bot.store.errors import where
from bot.store.migrate import RECORD as RECORD_TABLE
from bot.store.migrate import Migration, alone, apply, migrations_folder, read_migrations
from bot.store.queries import query

_CREATED = re.compile(r"^create (table|function|sequence) (?:if not exists )?(\w+)", re.MULTILINE)
_FLEETING = frozenset({RECORD, "workers"})
"""Tables whose rows nobody would miss: who is alive says so again."""


async def load(dsn: str, source: Path | IO[bytes], *, force: bool = False) -> BackupContents:
    """Restore a backup, and bring it up to date; an older one is migrated on the way.

    UserError when the file is no whole backup, or the database has anything in it: `force` has that
    removed. SetupError when the database fails or a Podium uses it. In neither case is anything
    changed, and a kill at any moment leaves what there was.
    """
    known = read_migrations(migrations_folder())
    with opened(source) as backup:
        had = _of_its_time(backup.manifest, known)
        async with (
            connected(dsn, "restoring") as connection,
            alone(connection),
            connection.transaction(),
        ):
            await _make_room(connection, where(dsn), force=force)
            await connection.execute(RECORD_TABLE)
            for migration in known[:had]:
                await apply(connection, migration)
            await _fill(connection, backup)
            for migration in known[had:]:
                await apply(connection, migration)
            await connection.execute("analyze")
        return backup.manifest.contents


def _of_its_time(manifest: Manifest, known: Sequence[Migration]) -> int:
    """How many of the migrations the backup has; UserError unless they are the first ones."""
    ours = [(each.number, each.sha256) for each in known]
    theirs = [(each.number, each.sha256) for each in manifest.migrations]
    if theirs != ours[: len(theirs)]:
        raise UserError(
            "new-backup",
            f"the backup is of Podium {manifest.podium or 'of another version'} with "
            f"{len(theirs)} migrations, and this one knows other {len(ours)}; install that Podium "
            "or a newer one",
        )
    return len(theirs)


async def _make_room(connection: Connection, place: str, *, force: bool) -> None:
    """Removes what is there, where that is allowed."""
    there = await tables(connection)
    strangers = sorted(there.keys() - _ours()["table"] - {RECORD})
    if strangers:
        raise UserError(
            "not-empty",
            f"{place} has tables that are none of this Podium's ({', '.join(strangers[:5])}); "
            "restore into a database of its own",
        )
    users = await connection.fetchval(query("backup.users"))
    if users:
        raise SetupError(f"a Podium uses {place} ({users} connections); stop it first")
    full = [name for name in sorted(there) if await _has_rows(connection, name)]
    if full and not force:
        raise UserError(
            "not-empty",
            f"{place} is not empty: {', '.join(full[:5])} have rows; restore into an empty one, "
            "or let --force remove everything that is there",
        )
    for kind, names in _ours().items():
        for name in sorted(names):
            await connection.execute(f"drop {kind} if exists {name} cascade")
    await connection.execute(f"drop table if exists {RECORD}")


async def _has_rows(connection: Connection, table: str) -> bool:
    if table in _FLEETING:
        return False
    # The name is one of `_ours`: it comes from our own files.
    return bool(await connection.fetchval(f"select exists (select from {table})"))  # noqa: S608


@cache
def _ours() -> dict[str, frozenset[str]]:
    """What the migrations make, by kind."""
    text = "\n".join(each.sql for each in read_migrations(migrations_folder()))
    found = _CREATED.findall(text)
    return {
        kind: frozenset(name for its, name in found if its == kind)
        for kind in ("table", "function", "sequence")
    }


async def _fill(connection: Connection, backup: Reading) -> None:
    """Copies the rows in while nothing looks at them: keys are checked once all are there."""
    manifest = backup.manifest
    there = await tables(connection)
    theirs = {each.name: frozenset(each.columns) for each in manifest.tables}
    if theirs != {name: frozenset(there[name]) for name in there.keys() - {RECORD}}:
        raise UserError("bad-backup", "the backup has not the tables of its own migrations")
    keys = await connection.fetch(query("backup.foreign_keys"))
    for key in keys:
        await connection.execute(key["without"])
    await connection.execute(query("backup.silence"))
    for table in manifest.tables:
        await _copy(connection, backup, table)
    for name, value in manifest.sequences.items():
        await connection.execute(query("backup.set_sequence"), name, value)
    await connection.execute(query("backup.speak"))
    for key in keys:
        await connection.execute(key["again"])


async def _copy(connection: Connection, backup: Reading, table: Table) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for piece in backup.pieces(table.name):
            yield piece

    status = await connection.copy_to_table(
        table.name, columns=table.columns, source=pieces(), format="text", timeout=STATEMENT_S
    )
    if rows_in(status) != table.rows:
        raise UserError("bad-backup", f"table {table.name} has not the rows that it should")
