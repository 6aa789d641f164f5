"""Keeps a server alive: restarts one that dies, and ends one that hangs."""

import asyncio
from dataclasses import dataclass

import asyncpg
import structlog

from bot.domain.errors import SetupError
from bot.store.embedded import processes
from bot.store.embedded.server import Cluster
from bot.store.errors import DRIVER_FAILURES

FIRST_RESTART_S = 0.1
LAST_RESTART_S = 5.0
LOOK_S = 2.0
ANSWER_LIMIT_S = 2.0
HANGING_LOOKS = 4
"""Longer in all than the five seconds which Postgres gives its own processes to end."""

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Keeper:
    """The server's process, replaced whenever it dies."""

    cluster: Cluster
    process: asyncio.subprocess.Process

    async def watch(self) -> None:
        """Restart the server for as long as this runs, ever more slowly while that fails."""
        delay_s = FIRST_RESTART_S
        while True:
            status = await self._ended()
            log.warning("the database died", action="postgres_died", status=status)
            try:
                self.process = await self.cluster.start()
            except (SetupError, OSError) as error:
                log.warning("no restart", action="postgres_restart_failed", error=str(error))
                await asyncio.sleep(delay_s)
                delay_s = min(LAST_RESTART_S, 2 * delay_s)
            else:
                log.info("the database is back", action="postgres_restarted")
                delay_s = FIRST_RESTART_S

    async def _ended(self) -> int:
        """Wait until the server has ended, or end it when it hangs; gives its status."""
        looks = 0
        while True:
            try:
                async with asyncio.timeout(LOOK_S):
                    return await self.process.wait()
            except TimeoutError:
                looks = looks + 1 if await self._hangs() else 0
            if looks == HANGING_LOOKS:
                log.warning("the database hangs and is ended", action="postgres_hangs")
                self.process.kill()

    async def _hangs(self) -> bool:
        """Whether the server says that it recovers while nothing does.

        Postgres 18 waits for ever when the process that recovers it is killed.
        """
        try:
            connection = await asyncpg.connect(self.cluster.dsn, timeout=ANSWER_LIMIT_S)
            await connection.close(timeout=ANSWER_LIMIT_S)
        except asyncpg.CannotConnectNowError:
            return not await processes.recovers(self.cluster.data)
        except DRIVER_FAILURES:
            return False
        return False
