"""What the command line needs of an installation of Podium; `bot.app.installation` makes it."""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol, Self

from bot.cli.client import Servers
from bot.domain.backup import BackupContents
from bot.domain.ids import PersonId
from bot.domain.task_bundle import TaskBundle
from bot.ports import Clock, Store
from bot.ports.lines import Line
from runners.contract.evaluation import RoundPolicy
from runners.contract.runner import Capabilities, Runner


@dataclass(frozen=True, slots=True)
class OpenPodium:
    """An opened installation.

    `served` says that a `podium up` of this data folder works through its queue, `shared` that the
    database is one of DATABASE_URL, whose queue is for workers and not for whoever submits. Who is
    silent for `lease_s` seconds is taken to be gone.
    """

    store: Store
    clock: Clock
    database: str
    served: bool
    shared: bool
    lease_s: float = 30.0


LinkFor = Callable[[str], str]
"""Makes a link by which the person of this name at the machine signs in, once."""


@dataclass(frozen=True, slots=True)
class Hurry:
    """Other rounds than those of the mode, for the jobs of these people alone."""

    rounds: RoundPolicy
    people: frozenset[PersonId]


@dataclass(frozen=True, slots=True)
class OpenDoor:
    """An open door; `line` is its line to a service elsewhere, where it has one.

    It has `link_for` where nobody but this machine reaches it.
    """

    name: str
    line: Line | None = None
    link_for: LinkFor | None = None


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A server to judge for; what is None is in the environment.

    `plain_http` lets the token travel unencrypted to another machine.
    """

    url: str | None
    token: str | None
    plain_http: bool = False


@dataclass(frozen=True, slots=True)
class Requirement:
    """One thing that Podium needs or can use here; `remedy` says how to get a missing one."""

    name: str
    found: bool
    detail: str
    remedy: str = ""
    optional: bool = False


class Installation(Protocol):
    """Everything concrete behind the command line."""

    @property
    def data_dir(self) -> Path:
        """The folder of the embedded database and the log."""
        ...

    @property
    def version(self) -> str:
        """Of Podium; empty in a checkout that was not installed."""
        ...

    def at(self, data_dir: Path | None) -> Self:
        """The same installation on another data folder; None keeps this one."""
        ...

    def on_port(self, port: int | None) -> Self:
        """The same installation with its HTTP door on this port; None keeps what it is told."""
        ...

    def embedded_at(self, data_dir: Path) -> Self:
        """The same installation on another folder's own database, whatever DATABASE_URL says."""
        ...

    def is_served(self) -> bool:
        """Whether a `podium up` works through the queue of this data folder now."""
        ...

    def open(
        self, *, exclusive: bool = False, log_to_stderr: bool = False
    ) -> AbstractAsyncContextManager[OpenPodium]:
        """The database, migrated, and the store on it.

        `exclusive` is for the one process that serves a data folder; SetupError when it is taken.
        With `log_to_stderr` every event is written there too.
        """
        ...

    def runners(self) -> AbstractAsyncContextManager[Sequence[Runner]]:
        """The runners that the settings name; they are stopped at the end."""
        ...

    def working(
        self, podium: OpenPodium, runners: Sequence[Runner], hurry: Hurry | None = None
    ) -> AbstractAsyncContextManager[None]:
        """Works through the queue until left, then drains; `hurry` says whose jobs are cut short.

        SetupError when another process judges for this data folder, RunnerError when a runner
        cannot say what it offers.
        """
        ...

    def doors(
        self, podium: OpenPodium, runners: Sequence[Runner]
    ) -> AbstractAsyncContextManager[Sequence[OpenDoor]]:
        """The doors that the settings name, open until left."""
        ...

    def ready(
        self, runners: Sequence[Runner], opened: Sequence[OpenDoor] = ()
    ) -> AbstractAsyncContextManager[Sequence[tuple[str, Capabilities]]]:
        """What each runner offers, once all have said it; RunnerError when one cannot.

        Until it is left, others see that this process is ready once every door's line stands.
        """
        ...

    def judges_elsewhere(self, url: str | None) -> bool:
        """Whether a worker is to judge for a server: the one of this URL, or of PODIUM_SERVER."""
        ...

    def working_for(
        self, elsewhere: Elsewhere, runners: Sequence[Runner], *, log_to_stderr: bool = False
    ) -> AbstractAsyncContextManager[str]:
        """Works through a server's queue until left, then drains; gives the name it has there.

        SetupError when another process judges for this data folder or the server cannot be reached,
        UserError when it refuses.
        """
        ...

    def working_in_turn(self, podium: OpenPodium) -> AbstractAsyncContextManager[None]:
        """Works through the queue until left, once no other command of this data folder does."""
        ...

    @property
    def servers(self) -> Servers:
        """The servers elsewhere that commands can go to, as the settings and the logins have it."""
        ...

    @property
    def examples(self) -> Path:
        """The folder of the tasks that come with Podium."""
        ...

    def read_task(self, path: Path, root: Path | None = None) -> TaskBundle:
        """The files of a task's folder or zip; UserError when it is neither.

        A folder's task may take files from anywhere beneath `root`, else from the folder around it.
        """
        ...

    def task_folders(self, top: Path) -> tuple[Path, ...]:
        """The folders with a task at or below `top`."""
        ...

    async def migrate(self) -> tuple[int, ...]:
        """Bring the database up to date; gives the numbers of the migrations applied."""
        ...

    async def backup(self, target: Path | IO[bytes]) -> BackupContents:
        """Write the whole database into a new file or an open one, be it in use or not.

        UserError when there is such a file, or nothing to back up.
        """
        ...

    async def restore(self, source: Path | IO[bytes], *, force: bool) -> BackupContents:
        """Make the database what it was when the file was written; `force` where it is not empty.

        UserError when the file is no backup or the database not empty, SetupError when it is used.
        """
        ...

    async def discord_invite(self, application: int | None) -> str:
        """The link that lets the bot of an application into a guild; the token's without one."""
        ...

    async def deploy_to_modal(self) -> str:
        """Put the app of the runner `modal` at Modal; gives its page there.

        RunnerError when Modal refuses, SetupError without its client.
        """
        ...

    async def requirements(self) -> tuple[Requirement, ...]:
        """What is here and what is missing."""
        ...
