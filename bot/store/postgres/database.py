"""Runs named queries over a pool: every wait has a deadline, every failure is a StoreError.

`query("jobs.claim")` is `claim` in `queries/jobs.sql`.
"""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeAlias

import asyncpg

from bot.store.errors import reaching, translated

Connection: TypeAlias = "asyncpg.pool.PoolConnectionProxy[asyncpg.Record]"

FOLDER = Path(__file__).parents[1] / "queries"
HEADING = re.compile(r"^-- name: ([a-z_]+)$", re.MULTILINE)
_REFUSED = re.compile("[\x00\ud800-\udfff]")
MOST_CONNECTIONS = 10
CONNECT_S = 10.0
ACQUIRE_S = 10.0
CLOSE_S = 5.0
COMMAND_S = 35.0
"""Longer than the server's own limit, so that its clearer error comes first."""
SERVER_SETTINGS = {
    "application_name": "podium",
    "statement_timeout": "30s",
    "lock_timeout": "10s",
    "idle_in_transaction_session_timeout": "60s",
    "jit": "off",
    "timezone": "UTC",
}


@dataclass(frozen=True, slots=True)
class Database:
    """Runs named queries, each on a connection of the pool, or all on the bound one."""

    pool: "asyncpg.Pool[asyncpg.Record]"
    bound: "Connection | None" = None
    """The connection of the transaction that every query joins."""

    async def rows(self, name: str, *values: object) -> list[asyncpg.Record]:
        """Return every row of a named query."""
        async with self.connection() as connection:
            return await connection.fetch(query(name), *values)

    async def row(self, name: str, *values: object) -> asyncpg.Record | None:
        """Return the first row of a named query."""
        async with self.connection() as connection:
            return await connection.fetchrow(query(name), *values)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """Yield a connection: each query is its own transaction, or joins the bound one."""
        with translated():
            if self.bound is not None:
                yield self.bound
                return
            async with self.pool.acquire(timeout=ACQUIRE_S) as connection:
                yield connection

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """Yield a connection within one transaction; within a bound one, a savepoint."""
        async with self.connection() as connection, connection.transaction():
            yield connection


async def reach(dsn: str, within_s: float) -> None:
    """Connect once and close; SetupError when the database does not answer in time."""
    with reaching(dsn):
        connection = await asyncpg.connect(dsn, timeout=within_s)
        await connection.close(timeout=within_s)


@asynccontextmanager
async def open_pool(dsn: str) -> AsyncIterator[Database]:
    """Yield a pool that replaces broken connections; SetupError when it cannot connect."""
    with reaching(dsn):
        pool = await asyncpg.create_pool(
            dsn,
            min_size=1,
            max_size=MOST_CONNECTIONS,
            timeout=CONNECT_S,
            command_timeout=COMMAND_S,
            server_settings=SERVER_SETTINGS,
            init=_send_storable_text,
            reset=_leave_as_it_is,
        )
    try:
        yield Database(pool)
    finally:
        await _close(pool)


async def _close(pool: "asyncpg.Pool[asyncpg.Record]") -> None:
    """Wait for running queries, but not for those that never end."""
    try:
        async with asyncio.timeout(CLOSE_S):
            await pool.close()
    except TimeoutError:
        pool.terminate()


async def _leave_as_it_is(_: "asyncpg.Connection[asyncpg.Record]") -> None:
    """Do nothing: no query leaves settings, locks or cursors, and asyncpg ends transactions.

    Its own reset would cost one more round trip after every query.
    """


async def _send_storable_text(connection: "asyncpg.Connection[asyncpg.Record]") -> None:
    """Encode the text parameters of all queries with `storable`."""
    await connection.set_type_codec(
        "text", schema="pg_catalog", encoder=storable, decoder=str, format="text"
    )


@cache
def query(name: str) -> str:
    """Return the text of a query; KeyError for an unknown name."""
    file, _, wanted = name.partition(".")
    return _read(file)[wanted]


@cache
def _read(file: str) -> dict[str, str]:
    """Return a file's queries by name; text before the first heading is a comment."""
    parts = HEADING.split((FOLDER / f"{file}.sql").read_text("utf-8"))[1:]
    return {name: text.strip() for name, text in zip(parts[::2], parts[1::2], strict=True)}


def storable(text: str) -> str:
    """Return the text with each NUL as U+2400 and each lone surrogate as U+FFFD."""
    return _REFUSED.sub(lambda found: "\u2400" if found[0] == "\0" else "\ufffd", text)
