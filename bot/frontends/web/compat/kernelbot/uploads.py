"""A file that came as multipart form data, read within a limit and a deadline."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fastapi import Request
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import Field, File, FormParser, parse_options_header

from bot.domain.acceptance import MAX_SOURCE_BYTES
from bot.domain.errors import UserError
from bot.frontends.web.bodies import whole

FIELD = "file"
_FORM = "multipart/form-data"
_MOST = MAX_SOURCE_BYTES + (16 << 10)
"""Bytes of a body: of the file, and of the boundaries and headers round it."""
_DRAINED = 4 << 20
"""So much of a body is read before it is refused: who is cut off while sending hears no reason."""
_MOST_PARTS = 8


@dataclass(frozen=True, slots=True)
class Upload:
    """A file with the name that its sender gave it."""

    file_name: str
    content: bytes
    fields: Mapping[str, str]
    """Everything else of the form."""


async def upload_of(request: Request) -> Upload:
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


def _parsed(body: bytes, boundary: bytes) -> Upload:
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
    return Upload(name, content, form.fields)


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
