"""Makes every concrete thing once from the settings: database, store, runners, dispatcher."""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import IO

from bot.app import doctor, doors
from bot.app import runners as places
from bot.app import servers as client
from bot.app import worker as agent
from bot.app.context import Elsewhere, Hurry, OpenDoor, OpenPodium, Requirement
from bot.app.logs import log_to, to_stderr
from bot.domain.archive import read_zip
from bot.domain.backup import BackupContents
from bot.domain.errors import SetupError, UserError
from bot.domain.task_bundle import TaskBundle
from bot.services.dispatch import DispatchConfig, Dispatcher, StoreQueue
from bot.services.notify import notify
from bot.services.recover import recover
from bot.services.time_references import time_references
from bot.settings import Settings
from bot.store import folders
from bot.store.backup import dump, load, seekable
from bot.store.clock import SystemClock
from bot.store.embedded import open_database
from bot.store.failures import where
from bot.store.locks import is_served, judging, judging_in_turn, serving
from bot.store.migrate import check, migrate
from bot.store.postgres import open_store
from runners.contract.runner import Capabilities, Runner

_MAX_ZIP = 64 << 20


@dataclass(frozen=True, slots=True)
class Installation:
    """Podium on this machine, as its settings describe it."""

    settings: Settings

    @property
    def data_dir(self) -> Path:
        """The folder of the embedded database and the log."""
        return self.settings.data_dir

    @property
    def version(self) -> str:
        """Of Podium; empty in a checkout that was not installed."""
        return doors.version()

    def at(self, data_dir: Path | None) -> "Installation":
        """The same installation on another data folder."""
        return replace(self, settings=self.settings.at(data_dir))

    def on_port(self, port: int | None) -> "Installation":
        """The same installation with its HTTP door on this port."""
        return replace(self, settings=self.settings.on_port(port))

    def embedded_at(self, data_dir: Path) -> "Installation":
        """The same installation on the embedded database of another folder."""
        update = {"data_dir": data_dir, "database_url": None}
        return replace(self, settings=self.settings.model_copy(update=update))

    def is_served(self) -> bool:
        """Whether a `podium up` works through the queue of this data folder now."""
        return is_served(self.data_dir)

    @asynccontextmanager
    async def open(
        self, *, exclusive: bool = False, log_to_stderr: bool = False
    ) -> AsyncIterator[OpenPodium]:
        """The database, migrated, and the store on it."""
        clock = SystemClock()
        async with AsyncExitStack() as stack:
            served = self.is_served()
            if exclusive:
                await stack.enter_async_context(serving(self.data_dir))
            settings, copy = self.settings, to_stderr if log_to_stderr else None
            log_to(self.data_dir / "podium.log", copy, settings.secrets, settings.log_level)
            dsn, ready = await stack.enter_async_context(self._database(exclusive=exclusive))
            # Who joins a running Podium must not change the tables under it.
            if not ready:
                await (migrate(dsn) if exclusive else check(dsn))
            store = await stack.enter_async_context(open_store(dsn, clock))
            shared = settings.database_url is not None
            yield OpenPodium(store, clock, self._place(dsn), served, shared, settings.lease_s)

    @asynccontextmanager
    async def _database(
        self, *, exclusive: bool, prepare: Callable[[str], Awaitable[object]] = migrate
    ) -> AsyncIterator[tuple[str, bool]]:
        """The database's URL, and whether `prepare` was run on it."""
        url = self.settings.database_url
        if url is not None:
            yield url.get_secret_value(), False
            return
        async with open_database(
            self.data_dir,
            exclusive=exclusive,
            prepare=prepare,
            waiting=None if exclusive else _say_that_others_remain,
        ) as database:
            yield database.dsn, database.owner

    def _place(self, dsn: str) -> str:
        if self.settings.database_url is None:
            return f"embedded Postgres in {self.data_dir.resolve() / 'postgres'}"
        return where(dsn)

    @asynccontextmanager
    async def runners(self) -> AsyncIterator[tuple[Runner, ...]]:
        """The runners that the settings name."""
        async with AsyncExitStack() as stack:
            opened: dict[str, Runner] = {}
            for choice in self.settings.runner_choices:
                runner = places.create_runner(choice, self.settings)
                stack.push_async_callback(runner.aclose)
                if runner.name in opened:
                    raise SetupError(
                        f"PODIUM_RUNNERS names the runner {runner.name!r} twice; write it once, "
                        f"with slots where wanted, as in {choice.name}:CPU=2"
                    )
                opened[runner.name] = runner
            yield tuple(opened.values())

    @asynccontextmanager
    async def working(
        self, podium: OpenPodium, runners: Sequence[Runner], hurry: Hurry | None = None
    ) -> AsyncIterator[None]:
        """The only judge of this data folder; in a hurry it has no reference timed."""
        usual = hurry is None
        async with judging(self.data_dir), self._working(podium, runners, hurry, lasting=usual):
            yield

    @asynccontextmanager
    async def _working(
        self,
        podium: OpenPodium,
        runners: Sequence[Runner],
        hurry: Hurry | None = None,
        *,
        lasting: bool = False,
    ) -> AsyncIterator[None]:
        """Dispatcher and upkeep; RunnerError when a runner cannot say what it offers."""
        stop = asyncio.Event()
        lease_s = self.settings.lease_s
        sixth_s = lease_s / 6
        config = DispatchConfig(
            rounds=None if hurry is None else hurry.rounds,
            hurried=None if hurry is None else hurry.people,
            lease=timedelta(seconds=lease_s),
            beat_s=sixth_s,
            grace_s=places.grace_s(runners),
        )
        queue = StoreQueue(podium.store, config)
        dispatcher = Dispatcher(queue, runners, podium.clock, config)
        async with asyncio.TaskGroup() as group:
            group.create_task(dispatcher.run(stop), name="dispatcher")
            group.create_task(recover(podium.store, stop, every_s=sixth_s), name="reaper")
            news = notify(podium.store, podium.clock, stop, every_s=sixth_s)
            group.create_task(news, name="news")
            if lasting:
                timing = time_references(podium.store, stop, every_s=sixth_s)
                group.create_task(timing, name="references")
            asking = group.create_task(places.ask(runners), name="asking")
            try:
                yield
            finally:
                asking.cancel()
                stop.set()

    def doors(
        self, podium: OpenPodium, runners: Sequence[Runner]
    ) -> AbstractAsyncContextManager[tuple[OpenDoor, ...]]:
        """Opens every door that the settings name."""
        return doors.open_doors(self.settings, podium, runners)

    def ready(
        self, runners: Sequence[Runner], opened: Sequence[OpenDoor] = ()
    ) -> AbstractAsyncContextManager[tuple[tuple[str, Capabilities], ...]]:
        """What each runner offers; from then on others can see that this process is ready."""
        return doors.ready(self.data_dir, runners, opened)

    @property
    def servers(self) -> client.Servers:
        """The servers elsewhere that commands can go to."""
        return client.Servers(self.settings)

    def judges_elsewhere(self, url: str | None) -> bool:
        """Whether a worker here is to judge for a server: this one, or that of the settings."""
        return url is not None or self.settings.worker_server is not None

    @asynccontextmanager
    async def working_for(
        self, elsewhere: Elsewhere, runners: Sequence[Runner], *, log_to_stderr: bool = False
    ) -> AsyncIterator[str]:
        """The only judge of this data folder, for a server; gives its name there."""
        copy = to_stderr if log_to_stderr else None
        working = agent.working_for(elsewhere, runners, self.settings, copy)
        async with judging(self.data_dir), working as name:
            yield name

    @asynccontextmanager
    async def working_in_turn(self, podium: OpenPodium) -> AsyncIterator[None]:
        """Works through the queue as soon as no other command on this data folder does."""
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._work_in_turn(podium, stop), name="turn")
            try:
                yield
            finally:
                stop.set()

    async def _work_in_turn(self, podium: OpenPodium, stop: asyncio.Event) -> None:
        """Two judges on one machine would disturb each other's times."""
        async with judging_in_turn(self.data_dir, stop) as turn:
            if turn:
                async with self.runners() as runners, self._working(podium, runners):
                    await stop.wait()

    def read_task(self, path: Path, root: Path | None = None) -> TaskBundle:
        """The files of a task's folder or zip."""
        if path.is_dir() or path.suffix != ".zip":
            return folders.read_folder(path, root)
        try:
            with path.open("rb") as file:
                return read_zip(file.read(_MAX_ZIP), name=path.stem)
        except OSError as error:
            raise UserError("no-such-task", f"{path}: cannot be read ({error.strerror})") from error
        except UserError as error:
            raise UserError(error.code, f"{path}: {error.message}") from error

    @property
    def examples(self) -> Path:
        """The folder of the tasks that come with Podium."""
        return folders.examples()

    def task_folders(self, top: Path) -> tuple[Path, ...]:
        """The folders with a task at or below `top`."""
        return folders.task_folders(top)

    async def migrate(self) -> tuple[int, ...]:
        """Apply the migrations which the database lacks."""
        applied: list[int] = []

        async def prepare(dsn: str) -> None:
            applied.extend(await migrate(dsn))

        async with self._database(exclusive=False, prepare=prepare) as (dsn, prepared):
            if not prepared:
                await prepare(dsn)
        return tuple(applied)

    async def backup(self, target: Path | IO[bytes]) -> BackupContents:
        """Write the whole database, as it is and not migrated, into a file."""
        async with self._database(exclusive=False, prepare=_leave) as (dsn, _):
            return await dump(dsn, target, doors.version())

    async def restore(self, source: Path | IO[bytes], *, force: bool) -> BackupContents:
        """Make the database what a file has; nobody can join an embedded one meanwhile."""
        if self.is_served():
            raise SetupError(f"a `podium up` serves {self.data_dir}; stop it first")
        restored: list[BackupContents] = []

        async def prepare(dsn: str) -> None:
            restored.append(await load(dsn, file, force=force))

        with seekable(source, self.data_dir) as file:
            async with self._database(exclusive=False, prepare=prepare) as (dsn, prepared):
                if not prepared:
                    await prepare(dsn)
        return restored[0]

    async def requirements(self) -> tuple[Requirement, ...]:
        """What is here and what is missing."""
        return (
            *await doctor.examine(self.settings),
            *await doctor.examine_runners(self.runners(), strict=self.settings.strict_sandbox),
            *await doctor.examine_server(self.settings, lambda: agent.greeting_of(self.settings)),
            *doctor.examine_web(self.settings),
            *await doctor.examine_discord(doors.discord_settings(self.settings)),
        )

    async def deploy_to_modal(self) -> str:
        """Put the app of the runner `modal` where it runs; gives its page there."""
        return await places.deploy_to_modal()

    async def discord_invite(self, application: int | None) -> str:
        """The link that lets the bot of an application into a guild; the token's without one."""
        return await doors.discord_invite(self.settings, application)


async def _leave(_: str) -> None:
    """The database stays as it is."""


def _say_that_others_remain() -> None:
    sys.stderr.write("done; the database stays open for the other commands that use it\n")
