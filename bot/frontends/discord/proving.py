"""Keeps every release of this door going: takes it under a lease, and gives it back at the end."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import discord
import structlog

from bot.domain.errors import StoreError
from bot.domain.ids import ReleaseId
from bot.domain.release import Release
from bot.frontends.discord.door import DOOR, Door
from bot.frontends.discord.proof import Proof, TakenOverError

LOOK_S = 1.0
"""Between two looks for a release that nobody holds."""
AT_ONCE = 2
"""Tasks that one process proves at the same time."""
_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Proving:
    """What this process proves."""

    client: discord.Client
    door: Door
    owner: str = field(default_factory=lambda: f"discord-{secrets.token_hex(6)}")
    held: dict[ReleaseId, asyncio.Task[None]] = field(default_factory=dict)

    async def run(self) -> None:
        """Take what is due and keep what is held, until cancelled."""
        await self.client.wait_until_ready()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._again(self._take, LOOK_S), name="take releases")
            group.create_task(self._again(self._keep, self.door.beat_s), name="keep releases")

    async def let_go(self) -> None:
        """Stop what runs, and leave it to the next process at once."""
        tasks = list(self.held.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        with suppress(StoreError):
            await self.door.store.releases.let_go(self.owner)

    async def _again(self, deed: Callable[[], Awaitable[None]], seconds: float) -> None:
        while True:
            try:
                await deed()
            except StoreError as error:
                _log.warning("the store is away", action="releases_wait", error=str(error))
            await asyncio.sleep(seconds)

    async def _take(self) -> None:
        room = AT_ONCE - len(self.held)
        if room <= 0:
            return
        releases = self.door.store.releases
        for release in await releases.claim(DOOR, self.owner, self.door.lease, room):
            task = asyncio.create_task(self._prove(release), name=f"prove-{release.id}")
            self.held[release.id] = task

    async def _keep(self) -> None:
        held = dict(self.held)  # what is taken while the store is asked is not in its answer
        kept = set(await self.door.store.releases.keep(self.owner, self.door.lease))
        for number, task in held.items():
            if number not in kept:
                task.cancel()

    async def _prove(self, release: Release) -> None:
        number = release.id
        try:
            await Proof.of(self.client, self.door, self.owner, release).run()
        except TakenOverError:
            _log.info("a release was taken over", action="release_lost", release=number)
        except Exception as error:  # noqa: BLE001  a bug with one must not end the others
            _log.error("a release failed", action="incident", exc_info=error)
            with suppress(StoreError):
                await self.door.store.releases.finish(number, self.owner)
        finally:
            self.held.pop(number, None)


@asynccontextmanager
async def proving(client: discord.Client, door: Door) -> AsyncIterator[None]:
    """Proves for as long as the caller stays."""
    found = Proving(client, door)
    task = asyncio.create_task(found.run(), name="proving")
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await found.let_go()
