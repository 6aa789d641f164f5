"""Bodies: read within a limit and a deadline into strict types, and written from them."""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Final, TypeVar

from fastapi import Request, Response
from pydantic import ValidationError
from python_multipart.multipart import parse_options_header
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive
from typing_extensions import override

from bot.domain.errors import UserError, fault_words
from runners.contract.wire import Wire

READ_S = 60.0
"""What a body may take to arrive."""
_MOST_FAULTS = 3
_MOST_FILES = 16
_MOST_FIELDS = 64
_UTF8 = frozenset({b"utf-8", b"utf8", b"us-ascii"})
"""Names of the only encoding that is read; ASCII is a part of it."""
_MOST_TEXTS = 500
"""In the JSON of a request, names of fields included."""
_MOST_AROUND = 16 << 10
"""Bytes of it that are in no text: brackets, commas, numbers, room for the eye."""
_TEXT: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)
"""A text with its quotes; one that does not end goes on to the end, so that each byte is read once.
"""

Body = TypeVar("Body", bound=Wire)


async def read(request: Request, kind: type[Body], most: int) -> Body:
    """The body as this type; UserError when it is longer than `most` bytes or does not fit.

    Not FastAPI's own way: that reads bodies of any length, and takes JSON's lists for no tuples.
    """
    return parsed(kind, await whole(request, most))


async def read_optional(request: Request, kind: type[Body], most: int) -> Body:
    """The same, and the type's defaults where there is no body."""
    text = await whole(request, most)
    return parsed(kind, text or b"{}")


@asynccontextmanager
async def form_of(
    request: Request, most: int, *, files: int = _MOST_FILES, fields: int = _MOST_FIELDS
) -> AsyncIterator[FormData]:
    """A form with its files; UserError when it is longer than `most` bytes or is no form.

    Only then is it taken apart: what is too long or breaks off leaves no file behind.

    A part needs no content type of its own.
    """
    text = await whole(request, most)
    counts = {"max_files": files, "max_fields": fields, "max_part_size": most}
    try:
        form = await _taken_apart(request, text, counts)
    except MultiPartException as error:
        raise UserError("bad-body", f"the form cannot be read: {error.message}") from error
    except HTTPException as error:
        raise UserError("bad-body", f"the form cannot be read: {error.detail}") from error
    try:
        yield form
    finally:
        await form.close()


class _Multipart(MultiPartParser):
    """Knows whether the last boundary has come, and takes no text but UTF-8.

    Starlette reads whatever codec a form names, also those whose time grows with the square of
    the text (punycode), and those that are broken by design (undefined).
    """

    ended = False

    @override
    def on_end(self) -> None:
        self.ended = True

    @override
    def on_headers_finished(self) -> None:
        _require_utf8(self._current_part.content_disposition or b"", "a part's name")
        super().on_headers_finished()

    @override
    def on_part_end(self) -> None:
        if self._current_part.file is None:
            _require_utf8(self._current_part.data, f"the field {self._current_part.field_name!r}")
        super().on_part_end()


def _require_utf8(text: bytes | bytearray, where: str) -> None:
    try:
        text.decode()
    except UnicodeDecodeError as error:
        raise MultiPartException(f"{where[:100]} is not UTF-8; send it as UTF-8") from error


async def _taken_apart(request: Request, text: bytes, counts: Mapping[str, int]) -> FormData:
    """The form; whatever ends this early closes the files of the parts that there were."""
    kind, options = parse_options_header(request.headers.get("Content-Type"))
    charset = options.get(b"charset", b"utf-8").lower()
    if charset not in _UTF8:
        raise UserError("bad-body", "the form names another charset than UTF-8; send it as UTF-8")
    if kind != b"multipart/form-data":
        return await Request(request.scope, _given(text)).form(**counts)

    async def pieces() -> AsyncGenerator[bytes, None]:
        yield text
        if not parser.ended:
            # Told from here, the parser closes its files; at its own end it would take no notice.
            raise MultiPartException("it breaks off before its last boundary; send it again")

    async with aclosing(pieces()) as stream:
        parser = _Multipart(request.headers, stream, **counts)
        return await parser.parse()


def _given(text: bytes) -> Receive:
    """What hands over a body that is there already."""

    async def receive() -> Message:
        return {"type": "http.request", "body": text, "more_body": False}

    return receive


async def whole(request: Request, most: int) -> bytes:
    """All bytes of the body; UserError when it is longer than `most`, slow, or breaks off."""
    try:
        async with asyncio.timeout(READ_S):
            return await _text(request, most)
    except TimeoutError as error:
        words = f"the body did not arrive within {READ_S:.0f} s; send it again"
        raise UserError("slow-body", words) from error
    except ClientDisconnect as error:
        raise UserError("half-body", "the body broke off; send it again") from error


def parsed(kind: type[Body], text: bytes) -> Body:
    """JSON as this type; UserError where it does not fit."""
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        raise UserError("bad-body", f"the body is no {kind.__name__}: {_faults(error)}") from error


def require_simple(text: bytes, *, texts: int = _MOST_TEXTS, around: int = _MOST_AROUND) -> None:
    """UserError for JSON of thousands of names or values: each would be a fault of its own.

    It may have so many texts, and so many bytes `around` them.

    To find a million of them takes 16 s, in which nobody else is served.
    """
    # A quote inside a text is escaped, so what is left are about two for each text.
    quotes = text.count(b'"') - text.count(b'\\"')
    if quotes > 2 * texts or len(_TEXT.sub(b"", text)) > around:
        raise UserError("bad-body", "the body holds thousands of values; only texts may be long")


async def _text(request: Request, most: int) -> bytes:
    text = bytearray()
    async for piece in request.stream():
        text += piece
        if len(text) > most:
            raise UserError("large-body", f"the body is too long; at most {most} bytes are taken")
    return bytes(text)


def _faults(error: ValidationError) -> str:
    """Where it does not fit and why; never what was sent."""
    found = error.errors(include_input=False, include_url=False, include_context=False)
    words = [
        f"{'.'.join(str(part) for part in fault['loc']) or 'all of it'}: {fault_words(fault)}"
        for fault in found[:_MOST_FAULTS]
    ]
    more = len(found) - len(words)
    return "; ".join(words) + (f"; and {more} more" if more > 0 else "")


def written(body: Wire) -> Response:
    """The answer that holds this value; nobody on the way may keep it."""
    return Response(
        body.model_dump_json(),
        media_type="application/json",
        headers={"Cache-Control": "no-store"},
    )
