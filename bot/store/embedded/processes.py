"""Runs the programs of Postgres, and finds and stops those that an earlier owner left."""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from bot.domain.errors import SetupError
from bot.store.embedded.binaries import Account

LAUNCHER = Path(__file__).with_name("launch.py")
PROC = Path("/proc")
HAS_PROC = (PROC / "self" / "cwd").is_symlink()
POLL_S = 0.02
LISTING_LIMIT_S = 10.0
ENDINGS = ((signal.SIGINT, 10.0), (signal.SIGQUIT, 5.0), (signal.SIGKILL, 5.0))
"""Fast shutdown, immediate shutdown, kill; each with the seconds to wait for it."""
ENDINGS_OF_ORPHANS = ((signal.SIGINT, 2.0), (signal.SIGQUIT, 3.0), (signal.SIGKILL, 5.0))
"""The same for orphans. The kernel already asked them to stop when their owner died, and other
processes wait: the write-ahead log makes a hard stop safe, while a fast shutdown may starve under
connection attempts."""


async def start(account: Account, arguments: Sequence[str], log: int) -> asyncio.subprocess.Process:
    """Start a program as `account`; it is stopped with this process, if possible.

    The kernel ties that setting to a thread, so only the main thread requests it.
    """
    tied = threading.current_thread() is threading.main_thread()
    words = (account.uid, account.gid, os.getpid() if tied else 0)
    return await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-S", str(LAUNCHER), *map(str, words), *arguments,
        stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=asyncio.subprocess.STDOUT,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "TZ": "UTC"},
        cwd="/", start_new_session=True,
    )  # fmt: skip


async def run(account: Account, arguments: Sequence[str], limit_s: float) -> tuple[int, str]:
    """Run a program to its end; return its exit status and output."""
    process = await start(account, arguments, asyncio.subprocess.PIPE)
    try:
        async with asyncio.timeout(limit_s):
            printed, _ = await process.communicate()
    except TimeoutError as error:
        raise SetupError(f"{Path(arguments[0]).name} took more than {limit_s:.0f} s") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode or 0, printed.decode(errors="replace")


async def residents(data: Path) -> tuple[int, ...]:
    """Return the processes of a server in `data`, regardless of who started it."""
    if HAS_PROC:
        return _seen_in_proc(data)
    _, printed = await run(Account(), ["/bin/ps", "-axo", "pid=,command="], LISTING_LIMIT_S)
    lines = printed.splitlines()
    return tuple(int(line.split()[0]) for line in lines if f"postgres -D {data} " in line)


async def recovers(data: Path) -> bool:
    """Return whether a process of the server in `data` is recovering it; True if unknown."""
    return not HAS_PROC or any(_recovers(PROC / str(pid)) for pid in _seen_in_proc(data))


def _recovers(entry: Path) -> bool:
    try:
        return b"postgres: startup" in (entry / "cmdline").read_bytes()
    except OSError:
        return False


def _seen_in_proc(data: Path) -> tuple[int, ...]:
    return tuple(int(entry.name) for entry in PROC.iterdir() if _lives_in(entry, data))


def _lives_in(entry: Path, data: Path) -> bool:
    """Return whether a process in /proc is a live Postgres with `data` as its folder."""
    if not entry.name.isdecimal():
        return False
    try:
        return (entry / "cwd").readlink() == data and (entry / "comm").read_text() == "postgres\n"
    except OSError:
        return False


async def evict(data: Path) -> None:
    """Stop every process of an earlier server in `data`; SetupError when one stays."""
    for sign, limit_s in ENDINGS_OF_ORPHANS:
        for pid in await residents(data):
            with suppress(ProcessLookupError):
                os.kill(pid, sign)
        if await _deserted(data, limit_s):
            return
    left = ", ".join(map(str, await residents(data)))
    raise SetupError(f"an earlier Postgres still lives in {data} (process {left}); end it")


async def _deserted(data: Path, limit_s: float) -> bool:
    for _ in range(int(limit_s / POLL_S)):
        if not await residents(data):
            return True
        await asyncio.sleep(POLL_S)
    return False
