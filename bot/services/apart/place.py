"""One separate process that runs one call at a time and is killed when a call takes too long."""

import asyncio
import atexit
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Timer
from typing import TypeVar

import structlog

from bot.domain.errors import StoreError, UserError
from bot.services.apart.calls import CallResult, FunctionCall, answer_type, packed, receive, send

MEMORY = 1 << 30
"""Bytes that a process may use, with the interpreter and its imports."""
_STARTS_S = 30.0
"""Seconds for the interpreter and the function's imports, before any untrusted input."""
_ROOT = Path(__file__).resolve().parents[3]
_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); import bot.services.apart.reader as r; r.main()"
)

Read = TypeVar("Read")

_log = structlog.get_logger(__name__)


class TooHardError(UserError):
    """The input takes longer, or needs more memory, than any legitimate one."""

    def __init__(self, limit_s: float) -> None:
        super().__init__(
            "too-hard",
            f"reading this takes more than {limit_s:g} s or {MEMORY >> 20} MB; make it smaller, "
            "and compute long tables and texts where they are used",
        )


class BusyError(StoreError):
    """Too many calls are waiting; the caller should try again later."""


@dataclass(slots=True)
class Apart:
    """Runs one kind of call in a separate process; each kind has its own process and queue."""

    limit_s: float
    patience_s: float
    """Seconds that a caller waits, for earlier calls and for its own."""
    _process: "subprocess.Popen[bytes] | None" = None
    _imported: set[str] = field(default_factory=set)
    """The functions that the process has imported."""
    _thread: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="apart")
    )

    def __post_init__(self) -> None:
        """Kill the process when this object is deleted or the interpreter exits."""
        atexit.register(self._end)

    async def do(self, function: Callable[..., Read], *arguments: object) -> Read:
        """Return what a module's function returns; its annotations say how to serialize the call.

        Raises the function's own UserError, TooHardError when it takes too long or needs too much
        memory, and BusyError when no turn came.
        """
        waiting = self._thread.submit(self._done, function, arguments)
        try:
            async with asyncio.timeout(self.patience_s):
                return await asyncio.wrap_future(waiting)
        except TimeoutError as error:
            raise BusyError(
                "too many files are being read at the same time; try again in a moment"
            ) from error

    def _done(self, function: Callable[..., Read], arguments: tuple[object, ...]) -> Read:
        """Run the call; in the thread that has the process to itself."""
        call = packed(function, arguments, self.limit_s, MEMORY)
        answer = self._answer(call)
        if answer is None:
            raise TooHardError(self.limit_s)
        if answer.code:
            raise UserError(answer.code, answer.words)
        if answer.bug:
            raise RuntimeError(f"{call.function} failed apart:\n{answer.bug}")
        read: Read = answer_type(function).validate_json(answer.value)
        return read

    def _answer(self, call: FunctionCall) -> CallResult | None:
        """Return the answer; None when the process was killed or died."""
        process = self._process
        if process is None or process.poll() is not None:
            self._end()
            process = self._process = _started()
        if call.function not in self._imported:
            self._imported.add(call.function)
            _exchange(process, call.model_copy(update={"arguments": None}), _STARTS_S)
        answer = _exchange(process, call, self.limit_s)
        if answer is None:
            self._end()
            status = process.returncode
            _log.warning("too hard", action="too-hard", function=call.function, status=status)
        return answer

    def _end(self) -> None:
        process, self._process = self._process, None
        self._imported.clear()
        if process is not None:
            process.kill()
            with process:
                pass


def _started() -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-I", "-c", _PROGRAM, str(_ROOT)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env={}, cwd="/", start_new_session=True,
    )  # fmt: skip


def _exchange(
    process: "subprocess.Popen[bytes]", call: FunctionCall, limit_s: float
) -> CallResult | None:
    """Return the answer; None when the process ends first, killed after `limit_s` at the latest."""
    if process.stdin is None or process.stdout is None:
        raise AssertionError("it was started with pipes")
    timer = Timer(limit_s, process.kill)
    timer.start()
    try:
        send(process.stdin, call)
        return receive(process.stdout, CallResult)
    except OSError:
        return None
    finally:
        timer.cancel()
