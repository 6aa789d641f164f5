"""Keeps every release of a door going: takes it under a lease, and gives it back at the end."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeAlias

import structlog

from bot.domain.errors import StoreError, UserError
from bot.domain.ids import ReleaseId
from bot.domain.release import Release
from bot.ports import Store
from bot.services.publishing.pipeline import Draft, Released, Releasing
from bot.services.publishing.publish import published_already
from bot.services.publishing.request import Wish, read

LOOK_S = 1.0
"""Between two looks for a release that nobody holds."""
AT_ONCE = 2
"""Tasks that one process proves at the same time."""
MOST_TRIES = 3
_log = structlog.get_logger(__name__)


class TakenOverError(Exception):
    """Another process has this release now."""


Prove: TypeAlias = Callable[[Release, str], Awaitable[None]]
"""Proves a release for the owner of this name, and tells of it."""


@dataclass(slots=True)
class Proving:
    """What this process proves for one door."""

    store: Store
    door: str
    lease: timedelta
    prove: Prove
    ready: Callable[[], Awaitable[None]] | None = None
    """Awaited before anything is taken."""
    owner: str = ""
    held: dict[ReleaseId, asyncio.Task[None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """A name that no other process has."""
        self.owner = self.owner or f"{self.door}-{secrets.token_hex(6)}"

    async def run(self) -> None:
        """Take what is due and keep what is held, until cancelled."""
        if self.ready is not None:
            await self.ready()
        beat_s = self.lease.total_seconds() / 3
        async with asyncio.TaskGroup() as group:
            group.create_task(self._again(self._take, LOOK_S), name="take releases")
            group.create_task(self._again(self._keep, beat_s), name="keep releases")

    async def let_go(self) -> None:
        """Stop what runs, and leave it to the next process at once."""
        tasks = list(self.held.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        with suppress(StoreError):
            await self.store.releases.let_go(self.owner)

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
        for release in await self.store.releases.claim(self.door, self.owner, self.lease, room):
            task = asyncio.create_task(self._prove(release), name=f"prove-{release.id}")
            self.held[release.id] = task

    async def _keep(self) -> None:
        held = dict(self.held)  # what is taken while the store is asked is not in its answer
        kept = set(await self.store.releases.keep(self.owner, self.lease))
        for number, task in held.items():
            if number not in kept:
                task.cancel()

    async def _prove(self, release: Release) -> None:
        number = release.id
        try:
            await self.prove(release, self.owner)
        except TakenOverError:
            _log.info("a release was taken over", action="release_lost", release=number)
        except Exception as error:  # noqa: BLE001  a bug with one must not end the others
            _log.error("a release failed", action="incident", exc_info=error)
            with suppress(StoreError):
                await self.store.releases.finish(number, self.owner)
        finally:
            self.held.pop(number, None)


@asynccontextmanager
async def proving(found: Proving) -> AsyncIterator[None]:
    """Proves for as long as the caller stays."""
    task = asyncio.create_task(found.run(), name="proving")
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await found.let_go()


async def release_proven(
    releasing: Releasing, release: Release, wish: Wish, *, begun: bool
) -> Released:
    """Prove one release and publish it; UserError when nothing is published.

    `begun` says that its solutions had passed before, so that a process which was killed since may
    have published it already.
    """
    if release.tries > MOST_TRIES:
        raise UserError(
            "given-up",
            f"the check was begun {MOST_TRIES} times, and each time the bot ended with it; "
            "nothing was published; ask whoever runs the bot",
        )
    bundle, parsed = await read(release.zip, wish)
    request = wish.request(parsed.task)
    if begun and (found := await published_already(releasing.store, request)):
        return Released(found, ())
    (released,) = await releasing.release([Draft(bundle, request)])
    return released
