"""Bodies under `/eval`: JSON objects that become requests."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json
from starlette.requests import Request

from bot.domain.task_file import MAX_TASK
from bot.frontends.web.bodies import require_simple, whole
from bot.frontends.web.compat.evaluation_server.http import FormError, NoJsonError
from bot.frontends.web.compat.evaluation_server.requests import (
    CompareRequest,
    EvaluateRequest,
    LegacyRequest,
)

BODY_MAX = MAX_TASK
_MOST_TEXTS = 8_000
"""Names of keys included: two kernels of 128 arguments, with all that can be told of each."""
_MOST_AROUND = 64 << 10
"""Bytes that are in no text."""
_LEGACY = {"ref_code", "custom_code"}

Model = TypeVar("Model", bound=BaseModel)


Read = TypeVar("Read")


async def asked(request: Request, read: Callable[[dict[str, Any]], Read]) -> Read:
    """What the body asks for, by one of the readers below.

    Literal data is unpacked meanwhile, so that this is done beside the loop.
    """
    text = await body_of(request)
    return await asyncio.to_thread(lambda: read(json_object(text)))


async def body_of(request: Request) -> bytes:
    """The body; UserError where it holds more values than any kernel has arguments."""
    text = await whole(request, BODY_MAX)
    require_simple(text, texts=_MOST_TEXTS, around=_MOST_AROUND)
    return text


def json_object(text: bytes) -> dict[str, Any]:
    """The text's object; NoJsonError for anything else."""
    try:
        found = from_json(text, allow_inf_nan=False)
    except ValueError as error:
        raise NoJsonError("json_invalid", f"JSON decode error: {error}") from error
    if not isinstance(found, dict):
        raise NoJsonError("dict_type", "Input should be a valid dictionary")
    return found


def evaluation(found: dict[str, Any]) -> EvaluateRequest:
    """A request to judge one kernel."""
    return parsed(EvaluateRequest, found)


def parsed(kind: type[Model], found: object) -> Model:
    """The object as a request; FormError says where it is none."""
    try:
        return kind.model_validate(found)
    except ValidationError as error:
        raise FormError(error) from error


def comparison(found: dict[str, Any]) -> CompareRequest:
    """A comparison in today's form, or in the older one."""
    if _LEGACY & found.keys():
        return parsed(LegacyRequest, found).as_comparison
    return parsed(CompareRequest, found)
