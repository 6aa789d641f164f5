"""Podium on this machine: opens its database, runners, worker and front ends by the settings."""

import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeVar

from bot.app import doctor, doors, logs, worker
from bot.app.context import OpenDoor, OpenPodium, RemoteServer, Requirement, RoundLimit, SystemClock
from bot.app.runners import deploy_to_modal, open_runners
from bot.app.servers import ServerDirectory
from bot.domain.errors import SetupError, StoreError, UserError
from bot.domain.records import BackupContents
from bot.domain.tasks.bundle import TaskBundle, read_zip
from bot.settings import Settings
from bot.store import errors, locks, task_folders
from bot.store.backup import dump, load, seekable
from bot.store.embedded import open_database
from bot.store.migrate import check, migrate
from bot.store.postgres import open_store
from runners.contract.runner import Capabilities, Runner

if TYPE_CHECKING:
    from bot.discord.setup_check import SetupReport

_MAX_ZIP = 64 << 20
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Installation:
    """Podium on this machine, as its settings describe it."""

    settings: Settings

    @property
    def data_dir(self) -> Path:
        """Return the folder of the embedded database and the log."""
        return self.settings.data_dir

    def at(self, data_dir: Path | None) -> "Installation":
        """Return the same installation on another data folder; None keeps this one."""
        return replace(self, settings=self.settings.at(data_dir))

    def on_port(self, port: int | None) -> "Installation":
        """Return the same installation with HTTP on this port; None keeps the configured one."""
        return replace(self, settings=self.settings.on_port(port))

    def embedded_at(self, data_dir: Path) -> "Installation":
        """Return the same installation on a folder's embedded database, despite DATABASE_URL."""
        update = {"data_dir": data_dir, "database_url": None}
        return replace(self, settings=self.settings.model_copy(update=update))

    def is_served(self) -> bool:
        """Return whether a `podium up` now processes the queue of this data folder."""
        return locks.is_served(self.data_dir)

    @asynccontextmanager
    async def open(
        self, *, exclusive: bool = False, log_to_stderr: bool = False
    ) -> AsyncIterator[OpenPodium]:
        """Yield the migrated database and its store.

        `exclusive` is for the one process that serves a data folder; SetupError when it is taken.
        With `log_to_stderr` every event is written there too.
        """
        clock = SystemClock()
        async with AsyncExitStack() as stack:
            served = self.is_served()
            if exclusive:
                await stack.enter_async_context(locks.serving(self.data_dir))
            settings, copy = self.settings, logs.to_stderr if log_to_stderr else None
            logs.log_to(self.data_dir / "podium.log", copy, settings.secrets, settings.log_level)
            dsn, ready = await stack.enter_async_context(self._database(exclusive=exclusive))
            # A process that joins a running Podium must not change its tables.
            if not ready:
                await (migrate(dsn) if exclusive else check(dsn))
            store = await stack.enter_async_context(open_store(dsn, clock, settings.gpu_prices))
            shared = settings.database_url is not None
            yield OpenPodium(
                store,
                clock,
                self._database_location(dsn),
                served,
                shared,
                settings.lease_s,
                settings.confirm_places,
            )

    @asynccontextmanager
    async def _database(
        self, *, exclusive: bool, prepare: Callable[[str], Awaitable[object]] = migrate
    ) -> AsyncIterator[tuple[str, bool]]:
        """Yield the database's URL, and whether `prepare` was run on it."""
        url = self.settings.database_url
        if url is not None:
            yield url.get_secret_value(), False
            return
        async with open_database(
            self.data_dir,
            exclusive=exclusive,
            prepare=prepare,
            waiting=None if exclusive else _say_database_stays_open,
        ) as database:
            yield database.dsn, database.owner

    def _database_location(self, dsn: str) -> str:
        if self.settings.database_url is None:
            return f"embedded Postgres in {self.data_dir.resolve() / 'postgres'}"
        return errors.where(dsn)

    def runners(self) -> AbstractAsyncContextManager[Sequence[Runner]]:
        """Open the runners that the settings name until the block ends."""
        return open_runners(self.settings)

    def working(
        self, podium: OpenPodium, runners: Sequence[Runner], limit: RoundLimit | None = None
    ) -> AbstractAsyncContextManager[None]:
        """Process the queue until the block ends, then drain; `limit` gives jobs fewer rounds.

        SetupError when another process judges for this data folder, RunnerError when a runner
        cannot say what it offers.
        """
        return worker.working(self.data_dir, podium, runners, limit)

    def doors(
        self, podium: OpenPodium, runners: Sequence[Runner]
    ) -> AbstractAsyncContextManager[tuple[OpenDoor, ...]]:
        """Open the front ends that the settings name until the block ends."""
        return doors.open_doors(self.settings, podium, runners)

    def ready(
        self, runners: Sequence[Runner], opened: Sequence[OpenDoor] = ()
    ) -> AbstractAsyncContextManager[tuple[tuple[str, Capabilities], ...]]:
        """Yield what each runner offers, once all have answered; RunnerError when one cannot.

        Until the block ends, others see that this process is ready, once every front end is
        connected.
        """
        return doors.ready(self.data_dir, runners, opened)

    @property
    def servers(self) -> ServerDirectory:
        """Return the servers that commands can use."""
        return ServerDirectory(self.settings)

    def judges_elsewhere(self, url: str | None) -> bool:
        """Return whether a worker is to judge for a server: this URL, or PODIUM_SERVER."""
        return url is not None or self.settings.worker_server is not None

    def working_for(
        self, remote: RemoteServer, runners: Sequence[Runner], *, log_to_stderr: bool = False
    ) -> AbstractAsyncContextManager[str]:
        """Process a server's queue until the block ends, then drain; yield the worker's name there.

        SetupError when another process judges for this data folder or the server cannot be reached,
        UserError when it refuses.
        """
        copy = logs.to_stderr if log_to_stderr else None
        return worker.working_for(remote, runners, self.settings, copy)

    def working_in_turn(self, podium: OpenPodium) -> AbstractAsyncContextManager[None]:
        """Process the queue until the block ends, once no other command of this folder does."""
        return worker.working_in_turn(self.data_dir, podium, self.runners)

    def read_task(self, path: Path, root: Path | None = None) -> TaskBundle:
        """Return the files of a task's folder or zip; UserError when it is neither.

        A folder's task may use files from anywhere below `root`, by default below its parent
        folder.
        """
        if path.is_dir() or path.suffix != ".zip":
            return task_folders.read_folder(path, root)
        try:
            with path.open("rb") as file:
                return read_zip(file.read(_MAX_ZIP), name=path.stem)
        except OSError as error:
            raise UserError("no-such-task", f"{path}: cannot be read ({error.strerror})") from error
        except UserError as error:
            raise UserError(error.code, f"{path}: {error.message}") from error

    @property
    def examples(self) -> Path:
        """Return the folder of the tasks that ship with Podium."""
        return task_folders.examples()

    def task_folders(self, top: Path) -> tuple[Path, ...]:
        """Return the folders with a task at or below `top`."""
        return task_folders.task_folders(top)

    async def migrate(self) -> tuple[int, ...]:
        """Apply the migrations that are missing from the database; return their numbers."""
        return await self._run_first(migrate)

    async def _run_first(self, operation: Callable[[str], Awaitable[Result]]) -> Result:
        """Run an operation on the database, before any other process can join an embedded one."""
        results: list[Result] = []

        async def prepare(dsn: str) -> None:
            results.append(await operation(dsn))

        async with self._database(exclusive=False, prepare=prepare) as (dsn, prepared):
            if not prepared:
                await prepare(dsn)
        return results[0]

    async def backup(self, target: Path | IO[bytes]) -> BackupContents:
        """Write the whole database, without migrating it, to a new file or an open one.

        UserError when the file exists, or there is nothing to back up.
        """
        async with self._database(exclusive=False, prepare=_migrate_nothing) as (dsn, _):
            return await dump(dsn, target, doors.version())

    async def restore(self, source: Path | IO[bytes], *, force: bool) -> BackupContents:
        """Replace the database with a backup; `force` allows that even if it is not empty.

        No other process can join an embedded database meanwhile. UserError when the file is not
        a backup or the database is not empty, SetupError when it is in use.
        """
        if self.is_served():
            raise SetupError(f"a `podium up` serves {self.data_dir}; stop it first")
        with seekable(source, self.data_dir) as file:
            return await self._run_first(partial(load, source=file, force=force))

    async def requirements(self) -> tuple[Requirement, ...]:
        """Return each requirement of Podium, met or not; `podium doctor` prints them."""
        return (
            *await doctor.examine(self.settings),
            *await doctor.examine_runners(self.runners(), strict=self.settings.strict_sandbox),
            *await doctor.examine_server(self.settings, lambda: worker.hello(self.settings)),
            *doctor.examine_web(self.settings),
            *await self._discord_requirements(),
        )

    async def _discord_requirements(self) -> tuple[Requirement, ...]:
        """Examine the bot, with what the database knows, if there is one."""
        door, is_shared = doors.discord_settings(self.settings), self.settings.database_url
        try:
            if door is not None and (is_shared or (self.data_dir / "postgres").exists()):
                async with self.open() as podium:
                    return await doctor.examine_discord(door, podium.store)
        except (SetupError, StoreError):
            pass  # `examine` reports the database
        return await doctor.examine_discord(door)

    async def deploy_to_modal(self) -> str:
        """Deploy the app of the runner `modal`; return the address of its page.

        RunnerError when Modal refuses, SetupError without its client.
        """
        return await deploy_to_modal()

    async def discord_invite(self, application: int | None) -> str:
        """Return the link that adds an application's bot to a guild; by default the token's."""
        return await doors.discord_invite(self.settings, application)

    async def check_discord(self) -> "SetupReport":
        """Return what Discord says about the bot; SetupError if it rejects the token."""
        return await doors.check_discord(self.settings)

    async def welcome_on_discord(self, guild: int, board: str) -> str | None:
        """Post the bot's first message in a guild; return the link to its channel, if it exists."""
        async with self.open() as podium:
            return await doors.welcome(self.settings, guild, board, podium.store)

    def store_discord_token(self, token: str) -> Path:
        """Store the bot's token in the data folder, readable only by its owner; return the file."""
        path = self.settings.discord_token_file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        with open(path, "x", encoding="utf-8", opener=_private) as file:
            file.write(f"{token}\n")
        return path

    def delete_discord_token(self) -> None:
        """Delete the stored token, for example because Discord rejects it."""
        self.settings.discord_token_file.unlink(missing_ok=True)

    @property
    def has_discord_token(self) -> bool:
        """Return whether there is a token, in the environment or stored."""
        return self.settings.bot_token is not None


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


async def _migrate_nothing(_: str) -> None:
    """Leave the database unchanged."""


def _say_database_stays_open() -> None:
    sys.stderr.write("done; the database stays open for the other commands that use it\n")
