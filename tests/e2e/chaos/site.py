"""The installation under fire: its processes, who restarts them, and how to find each victim."""

import asyncio
import os
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from bot.store.embedded.database import open_folder
from tests.architecture.tree import ROOT
from tests.e2e.chaos.crowd import ALPHA, BETA
from tests.e2e.chaos.schedule import Victim

LEASE_S = 2.0
RESTART_S = 0.2
UP_LIMIT_S = 60.0
POLL_S = 0.02
WORKERS = 2
STOP_LIMIT_S = 40.0
IN_CANDIDATE = 3
"""PID namespaces around a candidate: ours, the harness's, its own."""


@dataclass(slots=True)
class Unit:
    """One command that is started again whenever it ends, as systemd would."""

    name: str
    arguments: tuple[str, ...]
    environment: dict[str, str]
    log: Path
    process: asyncio.subprocess.Process | None = None
    starts: int = 0
    stopping: bool = False
    statuses: list[int] = field(default_factory=list)

    async def keep(self) -> None:
        """Run until stopped."""
        while not self.stopping:
            with self.log.open("ab") as log:
                self.process = await asyncio.create_subprocess_exec(
                    sys.executable, "-m", "bot", *self.arguments,
                    cwd=self.log.parent, env=self.environment, stdout=log, stderr=log,
                )  # fmt: skip
            self.starts += 1
            self.statuses.append(await self.process.wait())
            await asyncio.sleep(RESTART_S)

    @property
    def pid(self) -> int | None:
        """The live process, if there is one."""
        if self.process is None or self.process.returncode is not None:
            return None
        return self.process.pid

    async def stop(self) -> int:
        """Ask it to end; gives its exit status."""
        self.stopping = True
        if (pid := self.pid) is not None and self.process is not None:
            os.kill(pid, signal.SIGTERM)
            async with asyncio.timeout(STOP_LIMIT_S):
                return await self.process.wait()
        return self.statuses[-1]


class Site:
    """A data folder with `podium up` and two workers on it."""

    def __init__(self, folder: Path) -> None:
        self.data = folder / "data"
        self.up = self._unit("up", ("up",), {"PODIUM_RUNNERS": f"local:CPU=1,fake:{ALPHA}=2"})
        self.workers: list[Unit] = []
        self._folder = folder
        self._seen: set[psutil.Process] = set()
        self._keepers: list[asyncio.Task[None]] = []

    def _unit(self, name: str, arguments: tuple[str, ...], settings: dict[str, str]) -> Unit:
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "HOME": str(self.data.parent),
            "PODIUM_DATA_DIR": str(self.data),
            "PODIUM_LEASE_S": str(LEASE_S),
            "PODIUM_CONFIRM_PLACES": "false",  # findings.py compares scores with their evaluations
        }
        return Unit(name, arguments, environment | settings, self.data.parent / f"{name}.log")

    async def start(self) -> str:
        """Start everything; gives the database's URL, which stays the same over restarts."""
        self._keep(self.up)
        async with asyncio.timeout(UP_LIMIT_S):
            while not self._is_up():  # noqa: ASYNC110 - another process has no event for us
                await asyncio.sleep(POLL_S)
        dsn = open_folder(self.data).address()
        if dsn is None:
            raise RuntimeError("a running Podium did not publish its database's address")
        settings = {"PODIUM_RUNNERS": f"fake:{ALPHA}=2:{BETA}=2", "DATABASE_URL": dsn}
        for number in range(WORKERS):
            # Of one data folder one process judges; these stand for other machines.
            elsewhere = {"PODIUM_DATA_DIR": str(self._folder / f"worker{number}")}
            self.workers.append(self._unit(f"worker{number}", ("worker",), settings | elsewhere))
            self._keep(self.workers[-1])
        return dsn

    @property
    def logs(self) -> tuple[Path, ...]:
        """The logs that there are, of every data folder."""
        folders = [Path(each.environment["PODIUM_DATA_DIR"]) for each in (self.up, *self.workers)]
        return tuple(log for folder in folders if (log := folder / "podium.log").exists())

    def _keep(self, unit: Unit) -> None:
        self._keepers.append(asyncio.create_task(unit.keep(), name=unit.name))

    def _is_up(self) -> bool:
        return self.up.log.exists() and "Podium is up" in self.up.log.read_text()

    async def stop(self) -> dict[str, int]:
        """Stop the workers, then `up`; gives the exit statuses."""
        statuses = {unit.name: await unit.stop() for unit in (*self.workers, self.up)}
        await asyncio.gather(*self._keepers)
        return statuses

    async def abandon(self) -> None:
        """End whatever is left, however a run ended."""
        for keeper in self._keepers:
            keeper.cancel()
        await asyncio.gather(*self._keepers, return_exceptions=True)
        self.note()
        for process in self.survivors():
            with suppress(psutil.NoSuchProcess):
                process.kill()

    def candidates_for(self, victim: Victim) -> list[psutil.Process]:
        """The live processes of a kind; all that are seen are remembered."""
        self.note()
        match victim:
            case Victim.UP:
                return _processes([self.up.pid])
            case Victim.WORKER | Victim.STALLED:
                return _processes([unit.pid for unit in self.workers])
            case Victim.POSTGRES:
                return [each for each in self._beneath(self.up) if _name(each) == "postgres"]
            case Victim.JUDGE:
                return [each for each in self._harness() if _depth(each) < IN_CANDIDATE]
            case Victim.CANDIDATE:
                return [each for each in self._harness() if _depth(each) >= IN_CANDIDATE]

    def note(self) -> None:
        """Remember every process of ours that lives now."""
        for unit in (self.up, *self.workers):
            for process in (*_processes([unit.pid]), *self._beneath(unit)):
                self._seen.add(process)

    def survivors(self) -> list[psutil.Process]:
        """The remembered processes that still live."""
        return [each for each in self._seen if each.is_running() and _alive(each)]

    def _beneath(self, unit: Unit) -> list[psutil.Process]:
        try:
            return psutil.Process(unit.pid).children(recursive=True) if unit.pid else []
        except psutil.NoSuchProcess:
            return []

    def _harness(self) -> list[psutil.Process]:
        found = []
        for process in self._beneath(self.up):
            with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
                if "runners.harness" in process.cmdline():
                    found.append(process)
        return found


def _processes(pids: list[int | None]) -> list[psutil.Process]:
    found = []
    for pid in pids:
        with suppress(psutil.NoSuchProcess):
            if pid is not None:
                found.append(psutil.Process(pid))
    return found


def _name(process: psutil.Process) -> str:
    try:
        return process.name()
    except psutil.NoSuchProcess:
        return ""


def _alive(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _depth(process: psutil.Process) -> int:
    """How many PID namespaces a process is in, seen from ours."""
    with suppress(OSError):
        for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
            if line.startswith("NSpid:"):
                return len(line.split()) - 1
    return 0
