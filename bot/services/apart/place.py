"""A place with one process, which reads one thing after the other and is killed when it is late."""

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
"""Bytes of a process, with the interpreter and what it has imported."""
_STARTS_S = 30.0
"""For the interpreter and what the function imports; none of it is a stranger's."""
_ROOT = Path(__file__).resolve().parents[3]
_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); import bot.services.apart.reader as r; r.main()"
)

Read = TypeVar("Read")

_log = structlog.get_logger(__name__)


class TooHardError(UserError):
    """It takes longer, or more memory, than anything that somebody means to publish."""

    def __init__(self, limit_s: float) -> None:
        super().__init__(
            "too-hard",
            f"this takes more than {limit_s:g} s or {MEMORY >> 20} MB to be read; make it smaller, "
            "and compute long tables and texts where they are used",
        )


class BusyError(StoreError):
    """Others are being read for so long that it is better to come again."""


@dataclass(slots=True)
class Apart:
    """Where one kind of thing is read; each kind waits for its own kind alone."""

    limit_s: float
    patience_s: float
    """How long somebody waits, for those before and for the own reading."""
    _process: "subprocess.Popen[bytes] | None" = None
    _imported: set[str] = field(default_factory=set)
    """The functions that the process has ready."""
    _thread: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="apart")
    )

    def __post_init__(self) -> None:
        """Leave no process behind."""
        atexit.register(self._end)

    async def do(self, function: Callable[..., Read], *arguments: object) -> Read:
        """What a module's function gives for these arguments; its annotations say how they travel.

        Its own UserError; TooHardError when it is too late or needs too much; BusyError when it had
        no turn.
        """
        waiting = self._thread.submit(self._done, function, arguments)
        try:
            async with asyncio.timeout(self.patience_s):
                return await asyncio.wrap_future(waiting)
        except TimeoutError as error:
            raise BusyError("too much is being read at the same time") from error

    def _done(self, function: Callable[..., Read], arguments: tuple[object, ...]) -> Read:
        """In the thread, which has the process to itself."""
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
        """None when the process had to be killed, or died of it."""
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
    """The answer; None where the process ends before it, at the latest after so many seconds."""
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
