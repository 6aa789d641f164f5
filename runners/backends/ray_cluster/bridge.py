"""Starts Ray's driver process if needed, and exchanges commands and replies with it."""

import asyncio
import logging
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from pathlib import Path

from pydantic import ValidationError

from runners.backends.ray_cluster.protocol import LINES_MAX, Command, DriverFault, DriverReply
from runners.contract.runner import RunnerError, RunnerLostError

_ROOT = Path(__file__).resolve().parents[3]
_CONNECT_S = 90.0
_GRACE_S = 15.0
_STOP_S = 3.0
_INHERITED = frozenset({"PATH", "HOME", "LANG", "TMPDIR"})

_log = logging.getLogger(__name__)


class ClusterUnavailableError(RunnerLostError):
    """The cluster cannot be reached now; running calls may continue."""


def environment() -> dict[str, str]:
    """The environment of a driver: Ray's settings and a few others, but no secret of Podium."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name in _INHERITED or name.startswith("RAY_")
    }
    return {"RAY_AUTH_MODE": "token", **inherited}


class Bridge:
    """One driver at a time, and the commands that wait for its replies."""

    def __init__(self) -> None:
        self._starting = asyncio.Lock()
        self._process: Process | None = None
        self._listener: asyncio.Task[None] | None = None
        self._waiting: dict[int, asyncio.Future[DriverReply]] = {}
        self._number = 0
        self._closed = False

    async def request(self, command: Command) -> str:
        """Send a command and return the text of the driver's reply.

        ClusterUnavailableError while the cluster is unreachable, RunnerLostError if the slot has
        ended, RunnerError for any other failure.
        """
        process = await self._connected()
        self._number += 1
        reply = self._waiting[self._number] = asyncio.get_running_loop().create_future()
        numbered = command.model_copy(update={"number": self._number})
        try:
            await _write(process, numbered.model_dump_json().encode() + b"\n")
            async with asyncio.timeout(command.within_s + _GRACE_S):
                return _text(await reply)
        except TimeoutError as error:
            message = f"Ray's driver did not answer {command.operation}"
            raise ClusterUnavailableError(message) from error
        finally:
            self._waiting.pop(numbered.number, None)

    async def aclose(self) -> None:
        """Stop the driver; slots that still run remain for the next driver."""
        self._closed = True
        async with self._starting:
            await self._stop()

    async def _connected(self) -> Process:
        async with self._starting:
            if self._closed:
                raise RunnerError("the runner of Ray is closed")
            process, listener = self._process, self._listener
            ended = listener is None or listener.done()
            if process is None or process.returncode is not None or ended:
                await self._stop()
                process = await self._start()
            return process

    async def _start(self) -> Process:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "runners.backends.ray_cluster.driver"),
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            limit=LINES_MAX,
            env=environment(),
            cwd=_ROOT,
            start_new_session=True,  # Ctrl-C is for the parent only
        )
        self._process = process
        ready = self._waiting[0] = asyncio.get_running_loop().create_future()
        self._listener = asyncio.create_task(self._listen(process))
        try:
            async with asyncio.timeout(_CONNECT_S):
                _text(await ready)
        except BaseException as error:
            await asyncio.shield(self._stop())
            if isinstance(error, TimeoutError):
                raise RunnerError(f"Ray did not answer within {_CONNECT_S:.0f} s") from error
            raise
        return process

    async def _listen(self, process: Process) -> None:
        if process.stdout is None:
            raise ValueError("the driver process needs a pipe for stdout")
        try:
            while line := await process.stdout.readline():
                reply = DriverReply.model_validate_json(line)
                waiting = self._waiting.get(reply.number)
                if waiting is not None and not waiting.done():
                    waiting.set_result(reply)
        except (ValidationError, ValueError):
            _log.exception("Ray's driver broke the contract")
        finally:
            ended = DriverReply(number=0, text="Ray's driver ended", fault=DriverFault.UNAVAILABLE)
            for waiting in self._waiting.values():
                if not waiting.done():
                    waiting.set_result(ended)

    async def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            async with asyncio.timeout(_STOP_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
        if self._listener is not None:
            await asyncio.wait({self._listener})


async def _write(process: Process, line: bytes) -> None:
    if process.stdin is None:
        raise ValueError("the driver process needs a pipe for stdin")
    try:
        process.stdin.write(line)
        await process.stdin.drain()
    except (BrokenPipeError, ConnectionResetError) as error:
        raise ClusterUnavailableError("Ray's driver ended") from error


def _text(reply: DriverReply) -> str:
    match reply.fault:
        case None:
            return reply.text
        case DriverFault.UNAVAILABLE:
            raise ClusterUnavailableError(reply.text)
        case DriverFault.LOST | DriverFault.UNREACHED:
            raise RunnerLostError(reply.text)
        case DriverFault.ERROR | DriverFault.UNFIT:
            raise RunnerError(reply.text)
