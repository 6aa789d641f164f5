"""The API's responses and errors, authentication, and uploaded files."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import Depends, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import Field, File, FormParser, parse_options_header
from starlette.exceptions import HTTPException
from typing_extensions import override

from bot.domain.acceptance import MAX_SOURCE_BYTES
from bot.domain.accounts import ANYBODY, Caller, require_acting
from bot.domain.errors import StoreError, UserError
from bot.web import auth, bodies, errors, limits
from bot.web.context import context_of
from runners.contract.runner import RunnerError

PATIENCE_S = 20.0
"""Seconds that a read waits for an unreachable database; popcorn-cli stops a poll after 30 s."""
RETRY_S = 0.5

_ERRORS = (UserError, StoreError, RunnerError, RequestValidationError, HTTPException)
_OF_BODY = {"content-length", "content-type"}
Json = dict[str, object]
_Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class Route(APIRoute):
    """A route whose errors have KernelBot's shape; popcorn-cli prints their `detail`.

    A route that only reads retries while the database is unreachable, because popcorn-cli aborts a
    whole submission at the first failed poll.
    """

    @override
    def get_route_handler(self) -> _Handler:
        handle = super().get_route_handler()

        async def handle_errors(request: Request) -> Response:
            try:
                if request.method == "GET":
                    return await _with_retries(request, handle)
                return await handle(request)
            except _ERRORS as error:
                return _as_kernelbot_error(await errors.error_response(request, error))

        return handle_errors


async def _with_retries(
    request: Request, handle: Callable[[Request], Awaitable[Response]]
) -> Response:
    closing = context_of(request).closing
    try:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                try:
                    return await handle(request)
                except StoreError:
                    if closing.begun:
                        raise
                    await asyncio.sleep(RETRY_S)
    except TimeoutError as error:
        raise StoreError(f"no answer from the store within {PATIENCE_S:.0f} s") from error


def _as_kernelbot_error(answer: Response) -> Response:
    problem = json.loads(bytes(answer.body))
    headers = {name: value for name, value in answer.headers.items() if name not in _OF_BODY}
    return JSONResponse({"detail": problem["detail"]}, answer.status_code, headers)


def json_response(value: object, status: int = 200) -> Response:
    """Return a response that must not be cached."""
    return JSONResponse(value, status, {"Cache-Control": "no-store"})


def not_offered(what: str) -> Response:
    """501; `what` says how Podium does it instead."""
    return json_response({"detail": what}, 501)


_WRITE = "then write `cli_id: TOKEN` into ~/.popcorn.yaml"
TOKEN_HELP = (
    "make a token with `/profile link` on Discord, or `podium token create --person NAME` at the "
    f"machine that runs Podium; {_WRITE}"
)
_LONGEST_TOKEN = 200


async def reader_of(request: Request) -> Caller:
    """Return the token's person, or an anonymous caller without one; UserError if it is invalid."""
    secret = request.headers.get(limits.POPCORN_TOKEN, "").strip()
    if not secret:
        return ANYBODY
    if len(secret) > _LONGEST_TOKEN:
        raise UserError("bad-token", f"the cli_id is not a token of this Podium; {TOKEN_HELP}")
    try:
        return await auth.caller_with_token(request, secret)
    except UserError as error:
        raise UserError(error.code, f"{error.message}; {_WRITE}") from error


AnyReader = Annotated[Caller, Depends(reader_of)]
"""The caller."""


async def person_of(reader: AnyReader) -> Caller:
    """Return the calling person; UserError without a token."""
    if reader is ANYBODY:
        raise UserError("no-token", f"this needs the header {limits.POPCORN_TOKEN}; {TOKEN_HELP}")
    return reader


FromPerson = Annotated[Caller, Depends(person_of)]
"""A caller with a token, who reads."""


async def submitter_of(person: FromPerson) -> Caller:
    """Return a person who may submit; UserError for a read-only token."""
    require_acting(person)
    return person


FromSubmitter = Annotated[Caller, Depends(submitter_of)]
"""A caller whose token may act, not only read."""


FIELD = "file"
_FORM = "multipart/form-data"
_MOST = MAX_SOURCE_BYTES + (16 << 10)
"""The most bytes of a body: the file, and the boundaries and headers around it."""
_MOST_READ = 4 << 20
"""Bytes of a too large body that are read before the refusal, so that the client receives it."""
_MOST_PARTS = 8


@dataclass(frozen=True, slots=True)
class UploadedFile:
    """An uploaded file with its name."""

    file_name: str
    content: bytes
    fields: Mapping[str, str]
    """The other fields of the form."""


async def upload_of(request: Request) -> UploadedFile:
    """Return the form's file; UserError if it is too large, too slow, or the form is invalid.

    FastAPI's own parser is not used, because it reads files of any size.
    """
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    boundary = options.get(b"boundary")
    if kind != _FORM.encode() or not boundary:
        message = f"send the file as {_FORM} with a boundary, in its part {FIELD!r}"
        raise UserError("bad-body", message)
    return _parsed(await _body(request), boundary)


async def _body(request: Request) -> bytes:
    message = f"the file is too long; at most {MAX_SOURCE_BYTES:,} bytes are allowed"
    too_long = UserError("large-body", message)
    try:
        body = await bodies.read_bytes(request, _MOST_READ)
    except UserError as error:
        raise (too_long if error.code == too_long.code else error) from error
    if len(body) > _MOST:
        raise too_long
    return body


def _parsed(body: bytes, boundary: bytes) -> UploadedFile:
    form = _Form()
    parser = FormParser(_FORM, form.take, form.take, boundary=boundary)
    try:
        parser.write(body)
    except FormParserError as error:
        raise UserError("bad-body", f"the form cannot be read: {error}") from error
    finally:
        parser.close()
    if len(form.files) != 1:
        message = f"the form has no part {FIELD!r} with a file name, or several; send one file"
        raise UserError("bad-body", message)
    ((name, content),) = form.files
    return UploadedFile(name, content, form.fields)


@dataclass(slots=True)
class _Form:
    """The parts of a form so far."""

    parts: int = 0
    files: list[tuple[str, bytes]] = field(default_factory=list)
    fields: dict[str, str] = field(default_factory=dict)

    def take(self, part: Field | File) -> None:
        """Add a part; UserError for too many parts."""
        self.parts += 1
        if self.parts > _MOST_PARTS:
            raise UserError("bad-body", f"a form has at most {_MOST_PARTS} parts; send one file")
        if isinstance(part, File) and part.field_name == FIELD.encode():
            part.file_object.seek(0)
            name = (part.file_name or b"").decode(errors="replace")
            self.files.append((name, part.file_object.read()))
        elif isinstance(part, Field):
            name = (part.field_name or b"").decode(errors="replace")
            self.fields[name] = (part.value or b"").decode(errors="replace")
        part.close()
