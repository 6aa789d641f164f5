"""Who calls the API, how bodies are read, answers sent and errors told.

The evaluation server's client cannot be told a token, but it can be given one in its address, as in
`http://any:TOKEN@host/eval`: that arrives as a password.

Without a token only programs of this machine are heard, and only where the door listens nowhere
else. A browser's page could ask as well, and a proxy next to the door asks for strangers: both
leave a mark on what they send.
"""

import asyncio
import base64
import binascii
import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from bot.domain.accounts import require_acting, require_person
from bot.domain.board import Viewer
from bot.domain.errors import UserError
from bot.domain.tasks.task_file import MAX_TASK
from bot.web.auth import bearer, caller_by
from bot.web.bodies import require_simple, whole
from bot.web.compat.evaluation_server.requests import (
    BadRequestError,
    CompareRequest,
    EvaluateRequest,
    LegacyRequest,
)
from bot.web.context import context_of, is_loopback
from bot.web.errors import answer_to

IDENTITY = "eval:loopback"
_NAME = "Programs of this machine"
_MARKS = (
    "origin", "referer", "sec-fetch-site",
    "forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip",
)  # fmt: skip
"""What a browser or a proxy adds to a request."""


async def reader_of(request: Request) -> Viewer:
    """Who reads; UserError `bad-token` for nobody."""
    return await _caller(request, acts=False)


async def submitter_of(request: Request) -> Viewer:
    """Who submits; UserError for nobody, and for a token that only reads."""
    return await _caller(request, acts=True)


async def _caller(request: Request, *, acts: bool) -> Viewer:
    door = context_of(request)
    if "Authorization" in request.headers:
        caller = await caller_by(request, _secret(request))
        (require_acting if acts else require_person)(caller)
        return caller
    if _is_of_this_machine(request):
        person = await door.store.people.ensure(IDENTITY, _NAME)
        return Viewer(person.id, frozenset({person.identity}))
    raise UserError(
        "bad-token",
        "this needs a token: send Authorization: Bearer TOKEN, or write it into the address, "
        "as in http://any:TOKEN@HOST/eval",
    )


def _secret(request: Request) -> str:
    scheme, _, value = request.headers["Authorization"].partition(" ")
    if scheme.lower() != "basic":
        return bearer(request)
    try:
        _, _, password = base64.b64decode(value.strip(), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError) as error:
        raise UserError("bad-token", "the token in the address cannot be read") from error
    return password


def _is_of_this_machine(request: Request) -> bool:
    if not getattr(request.app.state, "loopback", False):
        return False
    direct = request.scope.get("http_version") != "1.0"  # what a proxy speaks by default
    unmarked = not any(mark in request.headers for mark in _MARKS)
    return direct and unmarked and is_loopback(request.url.hostname or "")


UNCACHED = {
    "Cache-Control": "no-cache, no-store, must-revalidate",
    "Pragma": "no-cache",
    "Expires": "0",
}
_FOREIGN = {"content-length", "content-type", "cache-control"}
_UNKNOWN = "unknown-job"
_MOST_FAULTS = 20


class FormError(Exception):
    """A JSON object that is no request; it says where."""

    def __init__(self, error: ValidationError) -> None:
        super().__init__("Invalid request format")
        self.faults = error.errors(include_input=False, include_url=False, include_context=False)


class NoJsonError(Exception):
    """A body that is no JSON object."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def answer(
    status: int, body: Mapping[str, Any], headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """An answer that nobody on the way keeps."""
    return JSONResponse(body, status, {**(headers or {}), **UNCACHED})


async def wrong_form(_: Request, error: Exception) -> Response:
    """400 with each place that does not fit."""
    faults = error.faults if isinstance(error, FormError) else []
    named = [
        {
            "field": " -> ".join(str(part) for part in fault["loc"]),
            "message": fault["msg"],
            "type": fault["type"],
        }
        for fault in faults[:_MOST_FAULTS]
    ]
    body = {"error": str(error), "validation_errors": named, "status": "client_error"}
    return answer(400, body)


async def no_json(_: Request, error: Exception) -> Response:
    """422 in the form that FastAPI gives it."""
    kind = error.kind if isinstance(error, NoJsonError) else "value_error"
    return answer(422, {"detail": [{"type": kind, "loc": ["body"], "msg": str(error)}]})


async def no_route(_: Request, error: Exception) -> Response:
    """404 and 405 in the form that Starlette gives them."""
    if not isinstance(error, HTTPException):
        raise error
    return answer(error.status_code, {"detail": error.detail}, error.headers)


async def refused(request: Request, error: Exception) -> Response:
    """Any other error: status and words are those of the door's one handler."""
    problem = await answer_to(request, error)
    words = json.loads(bytes(problem.body))
    code = words["code"]
    status = problem.status_code
    body = {"error": words["detail"], "status": "client_error" if status < 500 else "error"}
    if code == _UNKNOWN:
        body["status"] = "error"
    elif status < 500:
        details = error.details if isinstance(error, BadRequestError) else {"code": code}
        body["details"] = details
    kept = {name: value for name, value in problem.headers.items() if name not in _FOREIGN}
    return answer(status, body, kept)


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

    Literal data is unpacked meanwhile, so that this is done outside the loop.
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
