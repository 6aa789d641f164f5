"""The command line over a store in memory: locally, and at a server with the same store."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self, cast

from bot.app.context import OpenPodium, SystemClock
from bot.app.installation import Installation
from bot.app.servers import Say
from bot.cli.app import run
from bot.cli.client import Client
from bot.domain.tasks.bundle import TaskBundle
from bot.remote.client.client import open_remote
from bot.remote.http import Server
from bot.services.dispatch.config import DispatchConfig
from bot.services.dispatch.dispatcher import Dispatcher
from bot.services.dispatch.worker_queue import StoreQueue
from bot.store.task_folders import read_folder, task_folders
from bot.web.publications import checking
from runners.contract.runner import Runner
from tests.doubles.agents import make_door, way_to
from tests.doubles.memory_store import MemoryStore
from tests.doubles.scaffolded import make_judge

SERVER = "https://podium.test"


@dataclass
class Visiting:
    """An installation that is also the server; a dispatcher runs while a command runs."""

    store: MemoryStore = field(default_factory=lambda: MemoryStore(SystemClock()))
    token: str = ""
    data_dir: Path = Path(".podium")

    def __post_init__(self) -> None:
        self.door = make_door(self.store, SystemClock())
        self.way = way_to(self.door)

    def at(self, data_dir: Path | None) -> Self:
        return self

    @property
    def servers(self) -> Self:
        return self

    def chosen(self, url: str | None) -> str | None:
        return None if url in {None, "local"} else url

    def is_served(self) -> bool:
        return True

    def read_task(self, path: Path, root: Path | None = None) -> TaskBundle:
        return read_folder(path, root)

    def task_folders(self, top: Path) -> tuple[Path, ...]:
        return task_folders(top)

    @asynccontextmanager
    async def runners(self) -> AsyncIterator[Sequence[Runner]]:
        yield (make_judge(),)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[OpenPodium]:
        async with self._working():
            yield OpenPodium(self.store, SystemClock(), "memory", served=True, shared=False)

    @asynccontextmanager
    async def client_of(self, url: str, say: Say, *, named: bool) -> AsyncIterator[Client]:
        there = Server(url, self.token)
        suffix = f" --server {url}" if named else ""
        async with (
            self._working(),
            checking(replace(self.door)),  # of this command's own loop
            open_remote(there, say, suffix, self.way) as client,
        ):
            yield client

    @asynccontextmanager
    async def _working(self) -> AsyncIterator[None]:
        runner, stop = make_judge(), asyncio.Event()
        config = DispatchConfig(worker="here", poll_s=0.02)
        dispatcher = Dispatcher(StoreQueue(self.store, config), [runner], SystemClock(), config)
        working = asyncio.create_task(dispatcher.run(stop))
        try:
            yield
        finally:
            stop.set()
            await working
            await runner.aclose()

    def here(self, *arguments: str) -> int:
        """The exit code of a command on this machine, as Ada."""
        return run([*arguments, "--server", "local"], cast("Installation", self))

    def there(self, *arguments: str) -> int:
        """The exit code of a command at the server."""
        return run([*arguments, "--server", SERVER], cast("Installation", self))
