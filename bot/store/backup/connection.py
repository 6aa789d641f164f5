"""A connection of its own for a backup: its statements may take as long as a table is big."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeAlias

import asyncpg

from bot.domain.errors import SetupError
from bot.store.errors import DRIVER_FAILURES, reaching, reported, where

CONNECT_S = 10.0
STATEMENT_S = 3600.0
"""For one table."""
GONE_MS = 1000
"""How soon Postgres notices that this process was killed, so that its locks keep nobody waiting."""

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"


@asynccontextmanager
async def connected(dsn: str, what: str) -> AsyncIterator[Connection]:
    """A connection; SetupError that names `what` when the database refuses something."""
    with reaching(dsn):
        connection = await asyncpg.connect(
            dsn,
            timeout=CONNECT_S,
            command_timeout=STATEMENT_S,
            server_settings={"client_connection_check_interval": str(GONE_MS)},
        )
    try:
        yield connection
    except (*DRIVER_FAILURES, TimeoutError) as error:
        raise SetupError(f"{what} {where(dsn)} failed: {reported(error)}") from error
    finally:
        await connection.close(timeout=5)
