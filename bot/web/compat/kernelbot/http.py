"""How the API answers and who asks: JSON and errors, tokens, and files of a form."""

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
from bot.web.auth import caller_by
from bot.web.bodies import whole
from bot.web.context import context_of
from bot.web.errors import answer_to
from bot.web.limits import POPCORN_TOKEN
from runners.contract.runner import RunnerError

PATIENCE_S = 20.0
"""How long a reading waits for a database that is away; popcorn-cli gives up a poll after 30 s."""
RETRY_S = 0.5

_FAMILIES = (UserError, StoreError, RunnerError, RequestValidationError, HTTPException)
_OF_BODY = {"content-length", "content-type"}
Json = dict[str, object]
_Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class Route(APIRoute):
    """A route whose errors have KernelBot's shape; popcorn-cli prints their `detail`.

    Whatever only reads is read again while the database is away: popcorn-cli gives up a whole
    submission at the first poll that fails.
    """

    @override
    def get_route_handler(self) -> _Handler:
        handle = super().get_route_handler()

        async def answered(request: Request) -> Response:
            try:
                if request.method == "GET":
                    return await _patiently(request, handle)
                return await handle(request)
            except _FAMILIES as error:
                return _in_their_shape(await answer_to(request, error))

        return answered


async def _patiently(
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


def _in_their_shape(answer: Response) -> Response:
    problem = json.loads(bytes(answer.body))
    kept = {name: value for name, value in answer.headers.items() if name not in _OF_BODY}
    return JSONResponse({"detail": problem["detail"]}, answer.status_code, kept)


def answered(value: object, status: int = 200) -> Response:
    """An answer that nobody on the way may keep."""
    return JSONResponse(value, status, {"Cache-Control": "no-store"})


def not_offered(what: str) -> Response:
    """The answer where Podium does a thing in another way, which `what` tells."""
    return answered({"detail": what}, 501)


_WRITE = "then write `cli_id: TOKEN` into ~/.popcorn.yaml"
HOW = (
    "make a token with `/profile link` on Discord, or `podium token create --person NAME` at the "
    f"machine that runs Podium; {_WRITE}"
)
_LONGEST_TOKEN = 200


async def reader_of(request: Request) -> Caller:
    """The person of the token, or anybody where none came; UserError when it is nobody's."""
    secret = request.headers.get(POPCORN_TOKEN, "").strip()
    if not secret:
        return ANYBODY
    if len(secret) > _LONGEST_TOKEN:
        raise UserError("bad-token", f"the cli_id is no token of this Podium; {HOW}")
    try:
        return await caller_by(request, secret)
    except UserError as error:
        raise UserError(error.code, f"{error.message}; {_WRITE}") from error


AnyReader = Annotated[Caller, Depends(reader_of)]
"""The caller."""


async def person_of(reader: AnyReader) -> Caller:
    """The person who asks; UserError for anybody without a token."""
    if reader is ANYBODY:
        raise UserError("no-token", f"this needs the header {POPCORN_TOKEN}; {HOW}")
    return reader


FromPerson = Annotated[Caller, Depends(person_of)]
"""Somebody with a token, who reads."""


async def submitter_of(person: FromPerson) -> Caller:
    """Who may submit; UserError with a token that only reads."""
    require_acting(person)
    return person


FromSubmitter = Annotated[Caller, Depends(submitter_of)]
"""Somebody who may act as the person they are."""


FIELD = "file"
_FORM = "multipart/form-data"
_MOST = MAX_SOURCE_BYTES + (16 << 10)
"""Bytes of a body: of the file, and of the boundaries and headers round it."""
_DRAINED = 4 << 20
"""So much of a body is read before it is refused: who is cut off while sending hears no reason."""
_MOST_PARTS = 8


@dataclass(frozen=True, slots=True)
class UploadedFile:
    """A file with the name that its sender gave it."""

    file_name: str
    content: bytes
    fields: Mapping[str, str]
    """Everything else of the form."""


async def upload_of(request: Request) -> UploadedFile:
    """The form's file; UserError when it is too long, too slow, or no such form.

    Not FastAPI's own way, which reads files of any length.
    """
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    boundary = options.get(b"boundary")
    if kind != _FORM.encode() or not boundary:
        words = f"send the file as {_FORM} with a boundary, in its part {FIELD!r}"
        raise UserError("bad-body", words)
    return _parsed(await _body(request), boundary)


async def _body(request: Request) -> bytes:
    words = f"the file is too long; at most {MAX_SOURCE_BYTES:,} bytes are taken"
    too_long = UserError("large-body", words)
    try:
        body = await whole(request, _DRAINED)
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
        words = f"the form has no part {FIELD!r} with a file name, or several; send one file"
        raise UserError("bad-body", words)
    ((name, content),) = form.files
    return UploadedFile(name, content, form.fields)


@dataclass(slots=True)
class _Form:
    """What came in a form so far."""

    parts: int = 0
    files: list[tuple[str, bytes]] = field(default_factory=list)
    fields: dict[str, str] = field(default_factory=dict)

    def take(self, part: Field | File) -> None:
        """Keep a part that is the file; UserError for too many parts."""
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
