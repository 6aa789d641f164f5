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
_IMPORT_LIMIT_S = 30.0
"""Seconds for the interpreter and the function's imports, before any untrusted input."""
_ROOT = Path(__file__).resolve().parents[2]
_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from bot.services.parser_process import main; main()"
)

Result = TypeVar("Result")

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
class ParserProcess:
    """Runs calls one after another in a separate process, which is started when first needed."""

    limit_s: float
    patience_s: float
    """Seconds that a caller waits, for earlier calls and for its own."""
    _process: "subprocess.Popen[bytes] | None" = None
    _imported: set[str] = field(default_factory=set)
    """The functions that the process has imported."""
    _thread: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="parser")
    )

    def __post_init__(self) -> None:
        """Kill the process when this object is deleted or the interpreter exits."""
        atexit.register(self._end)

    async def call(self, function: Callable[..., Result], *arguments: object) -> Result:
        """Return what a module's function returns; its annotations say how to serialize the call.

        Raises the function's own UserError, TooHardError when it takes too long or needs too much
        memory, and BusyError when it did not end within `patience_s`.
        """
        future = self._thread.submit(self._run, function, arguments)
        try:
            async with asyncio.timeout(self.patience_s):
                return await asyncio.wrap_future(future)
        except TimeoutError as error:
            raise BusyError(
                "too many files are being read at the same time; try again in a moment"
            ) from error

    def _run(self, function: Callable[..., Result], arguments: tuple[object, ...]) -> Result:
        """Run the call; only called in `_thread`, so that calls never overlap."""
        call = function_call(function, arguments, self.limit_s, MEMORY)
        result = self._exchange(call)
        if result is None:
            raise TooHardError(self.limit_s)
        if result.code:
            raise UserError(result.code, result.words)
        if result.bug:
            raise RuntimeError(f"{call.function} failed in its parser process:\n{result.bug}")
        value: Result = result_adapter(function).validate_json(result.value)
        return value

    def _exchange(self, call: FunctionCall) -> CallResult | None:
        """Return the result; None when the process was killed or died."""
        process = self._process
        if process is None or process.poll() is not None:
            self._end()
            process = self._process = _start_process()
        if call.function not in self._imported:
            self._imported.add(call.function)
            _exchange_within(process, call.model_copy(update={"arguments": None}), _IMPORT_LIMIT_S)
        result = _exchange_within(process, call, self.limit_s)
        if result is None:
            self._end()
            status = process.returncode
            _log.warning("too hard", action="too-hard", function=call.function, status=status)
        return result

    def _end(self) -> None:
        process, self._process = self._process, None
        self._imported.clear()
        if process is not None:
            process.kill()
            with process:
                pass


def _start_process() -> "subprocess.Popen[bytes]":
    return subprocess.Popen(  # noqa: S603  of our own interpreter
        [sys.executable, "-I", "-c", _PROGRAM, str(_ROOT)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env={}, cwd="/", start_new_session=True,
    )  # fmt: skip


def _exchange_within(
    process: "subprocess.Popen[bytes]", call: FunctionCall, limit_s: float
) -> CallResult | None:
    """Return the result; None when the process ends first, which is killed after `limit_s`."""
    if process.stdin is None or process.stdout is None:
        raise AssertionError("the process was started with pipes")
    timer = Timer(limit_s, process.kill)
    timer.start()
    try:
        send(process.stdin, call)
        return receive(process.stdout, CallResult)
    except OSError:
        return None
    finally:
        timer.cancel()


_LENGTH_BYTES = 8
MAX_MESSAGE_BYTES = 256 << 20
"""The largest message: a length of `_LENGTH_BYTES` bytes, then JSON."""

Message = TypeVar("Message", bound=BaseModel)


def send(stream: IO[bytes], message: BaseModel) -> None:
    """Write one message."""
    text = message.model_dump_json().encode()
    stream.write(len(text).to_bytes(_LENGTH_BYTES, "big"))
    stream.write(text)
    stream.flush()


def receive(stream: IO[bytes], kind: type[Message]) -> Message | None:
    """Read one message; None when the other side has ended or sends something invalid."""
    head = stream.read(_LENGTH_BYTES)
    length = int.from_bytes(head, "big")
    if len(head) < _LENGTH_BYTES or length > MAX_MESSAGE_BYTES:
        return None
    text = stream.read(length)
    return kind.model_validate_json(text) if len(text) == length else None


def function_call(
    function: Callable[..., object], arguments: tuple[object, ...], limit_s: float, memory: int
) -> FunctionCall:
    """Return the call of a module's function."""
    adapters = argument_adapters(function)
    texts = [
        adapter.dump_json(value).decode()
        for adapter, value in zip(adapters, arguments, strict=True)
    ]
    name = f"{function.__module__}:{function.__qualname__}"
    return FunctionCall(function=name, arguments=texts, limit_s=limit_s, memory=memory)


@cache
def argument_adapters(function: Callable[..., object]) -> tuple[TypeAdapter[Any], ...]:
    """Return how each argument is serialized."""
    hints = get_type_hints(function, include_extras=True)
    return tuple(TypeAdapter(hints[name]) for name in inspect.signature(function).parameters)


@cache
def result_adapter(function: Callable[..., object]) -> TypeAdapter[Any]:
    """Return how the result is serialized."""
    return TypeAdapter(get_type_hints(function, include_extras=True)["return"])


def main() -> None:
    """Execute calls in the parsing process until its parent closes the pipe.

    The function to call comes from the parent and is trusted; only the arguments are untrusted.
    """
    while (call := receive(sys.stdin.buffer, FunctionCall)) is not None:
        _limit(call)
        send(sys.stdout.buffer, _answer(call))


def _limit(call: FunctionCall) -> None:
    """Let the kernel enforce the limits too, so that the process ends even without its parent."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = math.ceil(used.ru_utime + used.ru_stime + call.limit_s) + 1
    for resource_kind, limit in ((resource.RLIMIT_CPU, seconds), (resource.RLIMIT_AS, call.memory)):
        _, hard = resource.getrlimit(resource_kind)
        lower = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(resource_kind, (lower, hard))


def _answer(call: FunctionCall) -> CallResult:
    try:
        function = pkgutil.resolve_name(call.function)
        adapters = argument_adapters(function)
        if call.arguments is None:
            return CallResult()
        arguments = [
            adapter.validate_json(text)
            for adapter, text in zip(adapters, call.arguments, strict=True)
        ]
        value = result_adapter(function).dump_json(function(*arguments)).decode()
        return CallResult(value=value)
    except UserError as error:
        return CallResult(code=error.code, words=error.message)
    except MemoryError:
        raise SystemExit(1) from None  # too little memory is left to continue
    except Exception:  # noqa: BLE001 - the parent reports the bug
        return CallResult(bug=traceback.format_exc(limit=-8))
