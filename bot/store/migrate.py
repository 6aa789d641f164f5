"""Applies the numbered SQL files of `migrations/`, each once and in order."""

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeAlias

import asyncpg

from bot.domain.errors import SetupError
from bot.store.errors import DRIVER_FAILURES, first_line, reaching, where

LOCK = 0x706F6469756D
"""The key of the advisory lock that the migrating process holds."""
LOCK_DEADLINE_S = 60.0
LOCK_POLL_S = 0.1
CONNECT_S = 10.0
ANSWER_S = 30.0
MIGRATION_S = 3600.0
"""Seconds for one file, which may rewrite a large table; all other statements are fast."""
FILE_NAME = re.compile(r"^(\d{4})_[a-z0-9_]+\.sql$")
RECORD = """
create table if not exists schema_migrations (
    number     int primary key,
    name       text not null,
    sha256     text not null,
    applied_at timestamptz not null default now()
)
"""

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered file."""

    number: int
    name: str
    sql: str

    @property
    def sha256(self) -> str:
        """Return the hash by which an edited file is detected."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


def migrations_folder() -> Path:
    """Return the folder of the files: next to the code in a wheel, at the top of a checkout."""
    here = Path(__file__).resolve().parent
    folders = (here / "migrations", here.parent.parent / "migrations")
    for folder in folders:
        if (folder / "schema.sql").is_file():
            return folder
    raise SetupError(f"the migrations are missing: neither {folders[0]} nor {folders[1]} has them")


def read_migrations(folder: Path) -> tuple[Migration, ...]:
    """Return a folder's files by number; SetupError when a number is missing or repeated."""
    found = [
        Migration(int(match[1]), path.name, path.read_text("utf-8"))
        for path in sorted(folder.iterdir())
        if (match := FILE_NAME.match(path.name))
    ]
    numbers = [migration.number for migration in found]
    if numbers != list(range(1, len(found) + 1)):
        raise SetupError(f"migrations in {folder} must be numbered from 1 without gaps: {numbers}")
    return tuple(found)


@cache
def known_migrations() -> int:
    """Return how many migrations this version of Podium has."""
    return len(read_migrations(migrations_folder()))


async def migrate(dsn: str, folder: Path | None = None) -> tuple[int, ...]:
    """Apply the pending migrations; return their numbers."""
    known = read_migrations(folder or migrations_folder())
    async with connected(dsn, "migrating") as connection, migration_lock(connection):
        await connection.execute(RECORD)
        pending = _pending(known, await _applied(connection))
        for migration in pending:
            await apply(connection, migration)
    return tuple(migration.number for migration in pending)


async def check(dsn: str, folder: Path | None = None) -> None:
    """Raise SetupError unless the database has exactly the migrations of the code."""
    known = read_migrations(folder or migrations_folder())
    async with connected(dsn, "migrating") as connection:
        exists = await connection.fetchval("select to_regclass('schema_migrations') is not null")
        pending = _pending(known, await _applied(connection) if exists else ())
    if pending:
        raise SetupError(
            f"the database is missing migrations {pending[0].number} to {pending[-1].number}; "
            "run `podium migrate`"
        )


@asynccontextmanager
async def connected(
    dsn: str, what: str, answer_s: float | None = None, settings: dict[str, str] | None = None
) -> AsyncIterator[Connection]:
    """Yield a connection; SetupError that names `what` when the database refuses something."""
    with reaching(dsn):
        connection = await asyncpg.connect(
            dsn, timeout=CONNECT_S, command_timeout=answer_s or ANSWER_S, server_settings=settings
        )
    try:
        yield connection
    except DRIVER_FAILURES as error:
        raise SetupError(f"{what} {where(dsn)} failed: {first_line(error)}") from error
    finally:
        await connection.close(timeout=5)


@asynccontextmanager
async def migration_lock(connection: Connection) -> AsyncIterator[None]:
    """Hold the advisory lock for changing tables; SetupError when it does not become free.

    It is polled: a session that waits in `pg_advisory_lock` holds a snapshot, and an index that is
    built concurrently elsewhere would wait for that snapshot forever.
    """
    for _ in range(int(LOCK_DEADLINE_S / LOCK_POLL_S)):
        if await connection.fetchval("select pg_try_advisory_lock($1)", LOCK):
            break
        await asyncio.sleep(LOCK_POLL_S)
    else:
        raise SetupError(
            f"another Podium has been migrating this database for {LOCK_DEADLINE_S:.0f} s; "
            "wait for it to end, or stop it, and start again"
        )
    try:
        yield
    finally:
        if not connection.is_closed():
            await connection.execute("select pg_advisory_unlock($1)", LOCK)


async def _applied(connection: Connection) -> Sequence[asyncpg.Record]:
    return await connection.fetch(
        "select number, name, sha256 from schema_migrations order by number"
    )


def _pending(
    known: tuple[Migration, ...], applied: Sequence[asyncpg.Record]
) -> tuple[Migration, ...]:
    by_number = {migration.number: migration for migration in known}
    for row in applied:
        migration = by_number.get(row["number"])
        if migration is None:
            raise SetupError(
                f"the database is newer than this Podium: it has migration {row['name']}, and "
                f"this version knows only {len(known)}; install the newer Podium"
            )
        if migration.sha256 != row["sha256"]:
            raise SetupError(
                f"migration {migration.name} was edited after it was applied to this database; "
                "restore the file and put the change into a new one"
            )
    numbers = {row["number"] for row in applied}
    return tuple(migration for migration in known if migration.number not in numbers)


async def apply(connection: Connection, migration: Migration) -> None:
    """Run one file and record it, atomically; SetupError when it fails."""
    try:
        async with connection.transaction():
            await connection.execute(migration.sql, timeout=MIGRATION_S)
            await connection.execute(
                "insert into schema_migrations (number, name, sha256) values ($1, $2, $3)",
                migration.number,
                migration.name,
                migration.sha256,
            )
    except asyncpg.PostgresError as error:
        raise SetupError(f"migration {migration.name} failed: {first_line(error)}") from error
