"""The pool of connections: every wait has a deadline, every failure is a StoreError."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import asyncpg

from bot.store.errors import reaching, translated
from bot.store.queries import query
from bot.store.text import storable

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy

    Connection: TypeAlias = PoolConnectionProxy[asyncpg.Record]

MOST_CONNECTIONS = 10
CONNECT_S = 10.0
ACQUIRE_S = 10.0
CLOSE_S = 5.0
COMMAND_S = 35.0
"""Longer than the server's own limit, so that its clearer answer comes first."""
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
    """Runs named queries, each on a connection of the pool, or all on the one that is bound."""

    pool: "asyncpg.Pool[asyncpg.Record]"
    bound: "Connection | None" = None
    """The connection of a transaction of which every query is a part."""

    async def rows(self, name: str, *values: object) -> list[asyncpg.Record]:
        """Every row of a named query."""
        async with self.connection() as connection:
            return await connection.fetch(query(name), *values)

    async def row(self, name: str, *values: object) -> asyncpg.Record | None:
        """The first row of a named query."""
        async with self.connection() as connection:
            return await connection.fetchrow(query(name), *values)

    @asynccontextmanager
    async def connection(self) -> "AsyncIterator[Connection]":
        """A connection for queries: each its own transaction, or all of them in the bound one."""
        with translated():
            if self.bound is not None:
                yield self.bound
                return
            async with self.pool.acquire(timeout=ACQUIRE_S) as connection:
                yield connection

    @asynccontextmanager
    async def transaction(self) -> "AsyncIterator[Connection]":
        """A connection within one transaction; a savepoint where a connection is bound."""
        async with self.connection() as connection, connection.transaction():
            yield connection


async def reach(dsn: str, within_s: float) -> None:
    """Connect once and leave; SetupError when the database does not answer in time."""
    with reaching(dsn):
        connection = await asyncpg.connect(dsn, timeout=within_s)
        await connection.close(timeout=within_s)


@asynccontextmanager
async def open_pool(dsn: str) -> AsyncIterator[Database]:
    """A pool that replaces broken connections; SetupError when the database cannot be reached."""
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
    """Waits for running queries, but not for those that never end."""
    try:
        async with asyncio.timeout(CLOSE_S):
            await pool.close()
    except TimeoutError:
        pool.terminate()


async def _leave_as_it_is(_: "asyncpg.Connection[asyncpg.Record]") -> None:
    """No query here leaves settings, locks or cursors behind, and asyncpg ends open transactions.

    Its own reset would ask the server once more after every query.
    """


async def _send_storable_text(connection: "asyncpg.Connection[asyncpg.Record]") -> None:
    """Every text on its way in is made storable, so that no query can forget it."""
    await connection.set_type_codec(
        "text", schema="pg_catalog", encoder=storable, decoder=str, format="text"
    )
