"""The API's authentication, request bodies, responses and errors.

The evaluation server's client has no setting for a token, but its address can contain one, as in
`http://any:TOKEN@host/eval`, which arrives as a password.

Without a token, only programs on this machine may call, and only if the web server listens on
loopback. Requests that come from a browser's page or through a proxy, as their headers show, need a
token even then.
"""

import asyncio
import base64
import json
import re
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
from bot.web import auth, bodies, errors
from bot.web.compat.evaluation_server import requests
from bot.web.context import context_of, is_here, is_loopback

IDENTITY = "eval:loopback"
_NAME = "Programs of this machine"
_MARKS = (
    "origin", "referer", "sec-fetch-site",
    "forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip",
)  # fmt: skip
"""Headers that a browser or a proxy adds to a request."""
_HOST = re.compile(r"(?:\[(?P<address>[0-9A-Fa-f:.]+)\]|(?P<name>[0-9A-Za-z.-]+))(?::[0-9]{1,5})?")
"""A well-formed `Host` header."""


async def reader_of(request: Request) -> Viewer:
    """Return the caller of a reading route; UserError `bad-token` if there is none."""
    return await _caller(request, acts=False)


async def submitter_of(request: Request) -> Viewer:
    """Return the caller who submits; UserError if there is none, or for a read-only token."""
    return await _caller(request, acts=True)


async def _caller(request: Request, *, acts: bool) -> Viewer:
    context = context_of(request)
    if "Authorization" in request.headers:
        caller = await auth.caller_with_token(request, _secret(request))
        (require_acting if acts else require_person)(caller)
        return caller
    if _is_of_this_machine(request):
        person = await context.store.people.ensure(IDENTITY, _NAME)
        return Viewer(person.id, frozenset({person.identity}))
    raise UserError(
        "bad-token",
        "this needs a token: send Authorization: Bearer TOKEN, or write it into the address, "
        "as in http://any:TOKEN@HOST/eval",
    )


def _secret(request: Request) -> str:
    scheme, _, value = request.headers["Authorization"].partition(" ")
    if scheme.lower() != "basic":
        return auth.bearer(request)
    try:
        _, _, password = base64.b64decode(value.strip(), validate=True).decode().partition(":")
    except ValueError as error:  # not ASCII, not base64, or not UTF-8
        raise UserError("bad-token", "the token in the address cannot be read") from error
    return password


def _is_of_this_machine(request: Request) -> bool:
    if not is_here(request):
        return False
    direct = request.scope.get("http_version") != "1.0"  # the default of proxies
    unmarked = not any(mark in request.headers for mark in _MARKS)
    return direct and unmarked and is_loopback(_named_host(request))


def _named_host(request: Request) -> str:
    """Return the host of the `Host` header; empty if it is missing or malformed.

    Starlette's `request.url` would then have the server's own address instead.
    """
    named = _HOST.fullmatch(request.headers.get("host", ""))
    return "" if named is None else named["address"] or named["name"]


UNCACHED = {
    "Cache-Control": "no-cache, no-store, must-revalidate",
    "Pragma": "no-cache",
    "Expires": "0",
}
_FOREIGN = {"content-length", "content-type", "cache-control"}
_UNKNOWN = "unknown-job"
_MOST_FAULTS = 20


class FormError(Exception):
    """A JSON object that is not a valid request; `faults` lists the invalid fields."""

    def __init__(self, error: ValidationError) -> None:
        super().__init__("Invalid request format")
        self.faults = error.errors(include_input=False, include_url=False, include_context=False)


class NoJsonError(Exception):
    """A body that is not a JSON object."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def answer(
    status: int, body: Mapping[str, Any], headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """Return a response that must not be cached."""
    return JSONResponse(body, status, {**(headers or {}), **UNCACHED})


async def form_error(_: Request, error: Exception) -> Response:
    """400 with each invalid field."""
    faults = error.faults if isinstance(error, FormError) else []
    invalid = [
        {
            "field": " -> ".join(str(part) for part in fault["loc"]),
            "message": fault["msg"],
            "type": fault["type"],
        }
        for fault in faults[:_MOST_FAULTS]
    ]
    body = {"error": str(error), "validation_errors": invalid, "status": "client_error"}
    return answer(400, body)


async def json_error(_: Request, error: Exception) -> Response:
    """422 in FastAPI's format."""
    kind = error.kind if isinstance(error, NoJsonError) else "value_error"
    return answer(422, {"detail": [{"type": kind, "loc": ["body"], "msg": str(error)}]})


async def no_route(_: Request, error: Exception) -> Response:
    """404 and 405 in Starlette's format."""
    if not isinstance(error, HTTPException):
        raise error
    return answer(error.status_code, {"detail": error.detail}, error.headers)


async def other_error(request: Request, error: Exception) -> Response:
    """Return the response to any other error, by the web server's general handler."""
    problem = await errors.error_response(request, error)
    document = json.loads(bytes(problem.body))
    code = document["code"]
    status = problem.status_code
    body = {"error": document["detail"], "status": "client_error" if status < 500 else "error"}
    if code == _UNKNOWN:
        body["status"] = "error"
    elif status < 500:
        details = error.details if isinstance(error, requests.BadRequestError) else {"code": code}
        body["details"] = details
    extra_headers = {name: value for name, value in problem.headers.items() if name not in _FOREIGN}
    return answer(status, body, extra_headers)


BODY_MAX = MAX_TASK
_MOST_TEXTS = 8_000
"""The most strings, including keys: enough for two kernels with 128 fully described arguments."""
_MOST_AROUND = 64 << 10
"""The most bytes outside of strings."""
_LEGACY = {"ref_code", "custom_code"}

Model = TypeVar("Model", bound=BaseModel)


Read = TypeVar("Read")


async def read_request(request: Request, read: Callable[[dict[str, Any]], Read]) -> Read:
    """Return the request in the body, parsed by one of the functions below.

    Parsing decompresses literal data, so it runs outside the event loop.
    """
    text = await body_of(request)
    return await asyncio.to_thread(lambda: read(json_object(text)))


async def body_of(request: Request) -> bytes:
    """Return the body; UserError if it has more values than a valid request can have."""
    text = await bodies.read_bytes(request, BODY_MAX)
    bodies.require_simple(text, texts=_MOST_TEXTS, around=_MOST_AROUND)
    return text


def json_object(text: bytes) -> dict[str, Any]:
    """Return the JSON object in the text; NoJsonError for anything else."""
    try:
        parsed_json = from_json(text, allow_inf_nan=False)
    except ValueError as error:
        raise NoJsonError("json_invalid", f"JSON decode error: {error}") from error
    if not isinstance(parsed_json, dict):
        raise NoJsonError("dict_type", "Input should be a valid dictionary")
    return parsed_json


def evaluation(value: dict[str, Any]) -> requests.EvaluateRequest:
    """Parse a request to judge one kernel."""
    return parsed(requests.EvaluateRequest, value)


def parsed(kind: type[Model], value: object) -> Model:
    """Return the object as a request; FormError says which fields are invalid."""
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        raise FormError(error) from error


def comparison(value: dict[str, Any]) -> requests.CompareRequest:
    """Parse a comparison in the current or the older form."""
    if _LEGACY & value.keys():
        return parsed(requests.LegacyRequest, value).as_comparison
    return parsed(requests.CompareRequest, value)
