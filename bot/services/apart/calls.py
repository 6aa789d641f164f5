"""The messages to and from the parsing process: a length, then JSON with strict types."""

import inspect
from collections.abc import Callable
from functools import cache
from typing import IO, Any, TypeVar, get_type_hints

from pydantic import BaseModel, TypeAdapter

_HEAD = 8
MOST = 256 << 20
"""The largest message, in bytes."""

Message = TypeVar("Message", bound=BaseModel)


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
