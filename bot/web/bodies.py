"""Reads bodies into strict types, with limits on size and time, and writes responses."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import TypeVar

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
"""Seconds for a body to arrive."""
_MOST_FAULTS = 3
_MOST_FILES = 16
_MOST_FIELDS = 64
_MULTIPART = b"multipart/form-data"
_MOST_URLENCODED = 64 << 10
"""The most bytes of a form that is not multipart: the event loop decodes a `%41` in 1 µs."""
_UTF8 = frozenset({b"utf-8", b"utf8", b"us-ascii"})
"""Names of the only supported encoding; ASCII is a subset."""
_MOST_TEXTS = 500
"""The most strings in the JSON of a request, including field names."""
_MOST_OUTSIDE = 16 << 10
"""The most bytes outside of strings: brackets, commas, numbers, white space."""
Body = TypeVar("Body", bound=Wire)


async def read(request: Request, kind: type[Body], most: int) -> Body:
    """Return the body as this type; UserError when it is longer than `most` bytes or invalid.

    FastAPI's own parsing would read bodies of any length, and does not accept JSON lists for
    tuples.
    """
    return parse(kind, await read_bytes(request, most))


async def read_optional(request: Request, kind: type[Body], most: int) -> Body:
    """Return the body as this type, or the type's defaults when there is no body."""
    body = await read_bytes(request, most)
    return parse(kind, body or b"{}")


@asynccontextmanager
async def form_of(
    request: Request, most: int, *, files: int = _MOST_FILES, fields: int = _MOST_FIELDS
) -> AsyncIterator[FormData]:
    """Yield a form with its files; UserError when longer than `most` bytes or not a form.

    The body is parsed only when complete, so that an incomplete or too long one leaves no files
    behind. A part needs no content type. A long form must be multipart.
    """
    body = await _read_form_bytes(request, most)
    counts = {"max_files": files, "max_fields": fields, "max_part_size": most}
    try:
        form = await _parse_form(request, body, counts)
    except MultiPartException as error:
        raise UserError("bad-body", f"the form cannot be read: {error.message}") from error
    except HTTPException as error:
        raise UserError("bad-body", f"the form cannot be read: {error.detail}") from error
    try:
        yield form
    finally:
        await form.close()


async def _read_form_bytes(request: Request, most: int) -> bytes:
    kind, _ = parse_options_header(request.headers.get("Content-Type"))
    if kind == _MULTIPART or most <= _MOST_URLENCODED:
        return await read_bytes(request, most)
    message = (
        f"a form of more than {_MOST_URLENCODED} bytes must be multipart/form-data; send it as that"
    )
    too_long = UserError("large-body", message)
    try:
        return await read_bytes(request, _MOST_URLENCODED)
    except UserError as error:
        raise (too_long if error.code == too_long.code else error) from error


class _Multipart(MultiPartParser):
    """A parser that knows whether the last boundary has come, and accepts only UTF-8.

    Starlette accepts any codec that a form names, including quadratic ones (punycode) and
    deliberately broken ones (undefined).
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


async def _parse_form(request: Request, body: bytes, counts: Mapping[str, int]) -> FormData:
    """Return the form; when parsing ends early, the files of its parts are closed."""
    kind, options = parse_options_header(request.headers.get("Content-Type"))
    charset = options.get(b"charset", b"utf-8").lower()
    if charset not in _UTF8:
        raise UserError("bad-body", "the form names another charset than UTF-8; send it as UTF-8")
    if kind != _MULTIPART:
        return await Request(request.scope, _receiver_of(body)).form(**counts)

    async def chunks() -> AsyncGenerator[bytes, None]:
        yield body
        if not parser.ended:
            # The parser closes its files if its input raises, but not if its input just ends.
            raise MultiPartException("it ends before its last boundary; send it again")

    async with aclosing(chunks()) as body_stream:
        parser = _Multipart(request.headers, body_stream, **counts)
        return await parser.parse()


def _receiver_of(body: bytes) -> Receive:
    """Return an ASGI receive function for a body that is already read."""

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


async def read_bytes(request: Request, most: int) -> bytes:
    """Return the whole body; UserError when it is longer than `most`, slow, or incomplete."""
    try:
        async with asyncio.timeout(READ_S):
            return await _read_stream(request, most)
    except TimeoutError as error:
        message = f"the body did not arrive within {READ_S:.0f} s; send it again"
        raise UserError("slow-body", message) from error
    except ClientDisconnect as error:
        raise UserError("half-body", "the body was incomplete; send it again") from error


def parse(
    kind: type[Body], body: bytes, *, must: str = "the body must be a JSON object with"
) -> Body:
    """Parse JSON as this type; the UserError for invalid JSON begins with `must` and its fields."""
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        raise UserError(
            "bad-body", f"{must} {_field_names(kind)}; {_describe_faults(error)}"
        ) from error


def require_simple(body: bytes, *, texts: int = _MOST_TEXTS, around: int = _MOST_OUTSIDE) -> None:
    """Raise UserError for JSON with too many values: each could be invalid and become an error.

    At most `texts` strings are allowed, and `around` bytes outside of strings. Describing a million
    errors takes 16 s, in which no other request is served.
    """
    # Without escaped quotes, strings and what is outside of them alternate. Replacing is twice as
    # fast as a regular expression that reads each escape; this runs in the event loop.
    plain = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    many = plain.count(b'"') > 2 * texts
    if many or sum(map(len, plain.split(b'"')[::2])) > around:
        raise UserError(
            "bad-body",
            "the body is no JSON object, or has too many values; only its strings may be long",
        )


async def _read_stream(request: Request, most: int) -> bytes:
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > most:
            raise UserError("large-body", f"the body is too long; at most {most} bytes are allowed")
    return bytes(body)


def _field_names(kind: type[Wire]) -> str:
    """Return the names of a type's fields for people, such as `` `mode`, `gpus` (optional)``."""
    return ", ".join(
        f"`{name}`" if field.is_required() else f"`{name}` (optional)"
        for name, field in kind.model_fields.items()
    )


def _describe_faults(error: ValidationError) -> str:
    """Return where it is invalid and why, but never what was sent."""
    faults = error.errors(include_input=False, include_url=False, include_context=False)
    shown = [
        f"{'.'.join(str(part) for part in fault['loc']) or 'all of it'}: {fault_words(fault)}"
        for fault in faults[:_MOST_FAULTS]
    ]
    left_out = len(faults) - len(shown)
    return "; ".join(shown) + (f"; and {left_out} more" if left_out > 0 else "")


def json_response(body: Wire) -> Response:
    """Return the response with this value, which must not be cached on the way."""
    return Response(
        body.model_dump_json(), media_type="application/json", headers={"Cache-Control": "no-store"}
    )
