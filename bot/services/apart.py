"""Parses untrusted text in a separate process with limits on time and memory.

Some texts take minutes to parse, or more memory than the machine has, and a running parser cannot
be interrupted: its process is killed. The process has no environment, no open file and no secret.
It is reused, so that only the first call waits for its imports.
"""

import asyncio
import atexit
import inspect
import math
import pkgutil
import resource
import subprocess  # noqa: TID251  it starts the parsing process
import sys
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from threading import Timer
from typing import IO, Any, TypeVar, get_type_hints

import structlog
from pydantic import BaseModel, TypeAdapter

from bot.domain.errors import StoreError, UserError

MEMORY = 1 << 30
"""Bytes that a process may use, with the interpreter and its imports."""
_STARTS_S = 30.0
"""Seconds for the interpreter and the function's imports, before any untrusted input."""
_ROOT = Path(__file__).resolve().parents[2]
_PROGRAM = "import sys; sys.path.insert(0, sys.argv[1]); import bot.services.apart as r; r.main()"

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


class FunctionCall(BaseModel):
    """A function as `module:name`, its arguments as JSON, and its limits.

    Without arguments the function is only imported.
    """

    function: str
    arguments: list[str] | None
    limit_s: float
    memory: int


class CallResult(BaseModel):
    """The function's result as JSON, or its UserError, or the traceback of a bug."""

    value: str = ""
    code: str = ""
    words: str = ""
    bug: str = ""


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
    return subprocess.Popen(  # noqa: S603  of our own interpreter
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


_HEAD = 8
MOST = 256 << 20
"""The largest message, in bytes: a length, then JSON with strict types."""

Message = TypeVar("Message", bound=BaseModel)


def send(stream: IO[bytes], message: BaseModel) -> None:
    """Write one message."""
    text = message.model_dump_json().encode()
    stream.write(len(text).to_bytes(_HEAD, "big"))
    stream.write(text)
    stream.flush()


def receive(stream: IO[bytes], kind: type[Message]) -> Message | None:
    """Read one message; None when the other side has ended or sends something invalid."""
    head = stream.read(_HEAD)
    length = int.from_bytes(head, "big")
    if len(head) < _HEAD or length > MOST:
        return None
    text = stream.read(length)
    return kind.model_validate_json(text) if len(text) == length else None


def packed(
    function: Callable[..., object], arguments: tuple[object, ...], limit_s: float, memory: int
) -> FunctionCall:
    """Return the call of a module's function."""
    kinds = argument_types(function)
    texts = [kind.dump_json(value).decode() for kind, value in zip(kinds, arguments, strict=True)]
    name = f"{function.__module__}:{function.__qualname__}"
    return FunctionCall(function=name, arguments=texts, limit_s=limit_s, memory=memory)


@cache
def argument_types(function: Callable[..., object]) -> tuple[TypeAdapter[Any], ...]:
    """Return how each argument is serialized."""
    hints = get_type_hints(function, include_extras=True)
    return tuple(TypeAdapter(hints[name]) for name in inspect.signature(function).parameters)


@cache
def answer_type(function: Callable[..., object]) -> TypeAdapter[Any]:
    """Return how the result is serialized."""
    return TypeAdapter(get_type_hints(function, include_extras=True)["return"])


def main() -> None:
    """Read calls and answer them until the parent closes the pipe: the parsing process.

    Only its parent tells it what to call, and the parent has imported the same function; only the
    arguments are untrusted.
    """
    while (call := receive(sys.stdin.buffer, FunctionCall)) is not None:
        _limit(call)
        send(sys.stdout.buffer, _answer(call))


def _limit(call: FunctionCall) -> None:
    """Let the kernel enforce the limits too, so that the process ends even without its parent."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = math.ceil(used.ru_utime + used.ru_stime + call.limit_s) + 1
    for kind, limit in ((resource.RLIMIT_CPU, seconds), (resource.RLIMIT_AS, call.memory)):
        _, hard = resource.getrlimit(kind)
        lower = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(kind, (lower, hard))


def _answer(call: FunctionCall) -> CallResult:
    try:
        function = pkgutil.resolve_name(call.function)
        kinds = argument_types(function)
        if call.arguments is None:
            return CallResult()
        arguments = [
            kind.validate_json(text) for kind, text in zip(kinds, call.arguments, strict=True)
        ]
        value = answer_type(function).dump_json(function(*arguments)).decode()
        return CallResult(value=value)
    except UserError as error:
        return CallResult(code=error.code, words=error.message)
    except MemoryError:
        raise SystemExit(1) from None  # too little memory is left to continue
    except Exception:  # noqa: BLE001 - the parent reports the bug
        return CallResult(bug=traceback.format_exc(limit=-8))
