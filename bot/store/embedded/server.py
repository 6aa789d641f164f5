"""Starts, watches and stops the embedded Postgres."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import asyncpg
import structlog

from bot.domain.errors import SetupError
from bot.store.embedded.programs import STOP_SIGNALS, Account, in_recovery, run, start, stop_orphans
from bot.store.errors import DRIVER_FAILURES, writing

USER = "podium"
INITDB_LIMIT_S = 120.0
START_LIMIT_S = 60.0
POLL_S = 0.02
LONGEST_SOCKET_FOLDER = 85
"""Unix socket paths have at most 107 bytes, of which Postgres takes 16; the rest is spare."""
SMALLEST_FREE = 100 << 20
"""Bytes that a new server writes before it stores any of our rows."""
SETTINGS = {
    "listen_addresses": "",
    "port": "5432",
    "unix_socket_permissions": "0700",
    "max_connections": "100",
    "shared_buffers": "128MB",
    "timezone": "UTC",
    "log_min_messages": "warning",
}
FIRST_RESTART_S = 0.1
LAST_RESTART_S = 5.0
CHECK_S = 2.0
ANSWER_LIMIT_S = 2.0
HANGING_CHECKS = 4
"""Failed checks after which the server is killed; together they take longer than the five seconds
that Postgres gives its processes to end."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Cluster:
    """A server's folder, programs and account."""

    home: Path
    programs: Path
    account: Account
    password: str
    sockets: Path
    log: Path

    @property
    def data(self) -> Path:
        """Return the folder of the tables."""
        return self.home / "data"

    @property
    def dsn(self) -> str:
        """Return the URL, which contains the password."""
        host = quote(str(self.sockets), safe="")
        return f"postgresql://{USER}:{self.password}@/postgres?host={host}&port=5432"

    async def create(self) -> None:
        """Create the tables' folder if there is none; an incomplete one is created again."""
        if self.data.exists():
            return
        self._require_space()
        partial = self.home / "data.partial"
        shutil.rmtree(partial, ignore_errors=True)
        with ExitStack() as stack:
            with writing(self.home):
                partial.mkdir(mode=0o700)
                self.account.own(partial)
                password_file = stack.enter_context(self._password_file())
            status, output = await run(
                self.account, self._initdb(partial, password_file), INITDB_LIMIT_S
            )
        if status != 0:
            shutil.rmtree(partial, ignore_errors=True)
            raise self._start_error(output)
        partial.rename(self.data)

    @contextmanager
    def _password_file(self) -> Iterator[str]:
        with tempfile.NamedTemporaryFile("w", dir=self.sockets) as file:
            file.write(self.password + "\n")
            file.flush()
            self.account.own(Path(file.name))
            yield file.name

    async def start(self) -> asyncio.subprocess.Process:
        """Start the server and wait until it accepts connections."""
        await stop_orphans(self.data)
        pid_file = self.data / "postmaster.pid"
        # No server runs in the folder: a process with this id now is another program.
        pid_file.unlink(missing_ok=True)
        settings = SETTINGS | {"unix_socket_directories": str(self.sockets)}
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        command = [str(self.programs / "postgres"), "-D", str(self.data), *options]
        with writing(self.log):
            log = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            process = await start(self.account, command, log)
        finally:
            os.close(log)
        try:
            await self._ready(process, pid_file)
        except BaseException:
            await stop(process)
            raise
        return process

    def _initdb(self, data: Path, password_file: str) -> list[str]:
        return [
            str(self.programs / "initdb"), "-D", str(data), "-U", USER, f"--pwfile={password_file}",
            "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8", "--no-instructions",
        ]  # fmt: skip

    async def _ready(self, process: asyncio.subprocess.Process, pid_file: Path) -> None:
        for _ in range(int(START_LIMIT_S / POLL_S)):
            if process.returncode is not None:
                raise self._start_error(self.log.read_text(errors="replace"))
            if _status(pid_file) == "ready":
                return
            await asyncio.sleep(POLL_S)
        raise SetupError(f"Postgres was not ready after {START_LIMIT_S:.0f} s; see {self.log}")

    def _require_space(self) -> None:
        free = shutil.disk_usage(self.home).free
        if free < SMALLEST_FREE:
            raise SetupError(
                f"the disk is full: {free >> 20} MiB are free at {self.home}, and a new database "
                f"takes {SMALLEST_FREE >> 20} MiB; free some, or choose another data folder"
            )

    def _start_error(self, output: str) -> SetupError:
        if "No space left on device" in output:
            return SetupError(f"the disk is full at {self.home}; free some space and start again")
        last = " / ".join(output.strip().splitlines()[-3:])
        return SetupError(f"Postgres did not start in {self.home}: {last}")


def _status(pid_file: Path) -> str:
    try:
        return pid_file.read_text().splitlines()[7].strip()
    except (OSError, IndexError):
        return ""


async def stop(process: asyncio.subprocess.Process) -> None:
    """Stop the server: open transactions are rolled back, everything committed is kept."""
    for signal_number, limit_s in STOP_SIGNALS:
        if process.returncode is not None:
            return
        process.send_signal(signal_number)
        try:
            async with asyncio.timeout(limit_s):
                await process.wait()
        except TimeoutError:
            continue
    raise SetupError(f"Postgres (process {process.pid}) cannot be stopped")


def socket_folder(home: Path, account: Account) -> Path:
    """Return a socket folder that only `account` can enter; elsewhere if its path is too long."""
    if len(os.fsencode(home / "run")) <= LONGEST_SOCKET_FOLDER:
        folder = home / "run"
        folder.mkdir(mode=0o700, exist_ok=True)
    else:
        folder = Path(tempfile.mkdtemp(prefix="podium-"))
    account.own(folder)
    return folder


@dataclass(slots=True)
class ServerSupervisor:
    """The server's process, replaced whenever it dies."""

    cluster: Cluster
    process: asyncio.subprocess.Process

    async def watch(self) -> None:
        """Restart the server as long as this runs, with growing pauses while that fails."""
        delay_s = FIRST_RESTART_S
        while True:
            status = await self._wait_for_exit()
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

    async def _wait_for_exit(self) -> int:
        """Wait until the server has ended, or kill it when it hangs; return its status."""
        checks = 0
        while True:
            try:
                async with asyncio.timeout(CHECK_S):
                    return await self.process.wait()
            except TimeoutError:
                checks = checks + 1 if await self._hangs() else 0
            if checks == HANGING_CHECKS:
                log.warning("the database hangs and is killed", action="postgres_hangs")
                self.process.kill()

    async def _hangs(self) -> bool:
        """Return whether the server reports a recovery that no process performs.

        Postgres 18 waits forever when its recovery process is killed.
        """
        try:
            connection = await asyncpg.connect(self.cluster.dsn, timeout=ANSWER_LIMIT_S)
            await connection.close(timeout=ANSWER_LIMIT_S)
        except asyncpg.CannotConnectNowError:
            return not await in_recovery(self.cluster.data)
        except DRIVER_FAILURES:
            return False
        return False
