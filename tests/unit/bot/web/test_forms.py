"""Tests of forms: what is too long, what breaks off, what is no form."""

import pytest
from fastapi import Request
from starlette.types import Message

from bot.domain.errors import UserError
from bot.web.sessions import read_form

LIMIT = 1000
FORM = "application/x-www-form-urlencoded"
NAMELESS = b"--x\r\nContent-Disposition: form-data\r\n\r\n1\r\n--x--\r\n"


def sent(body: bytes, kind: str = FORM, *, whole: bool = True) -> Request:
    pieces = [body[at : at + 100] for at in range(0, len(body), 100)] or [b""]
    messages: list[Message] = [
        {"type": "http.request", "body": piece, "more_body": True} for piece in pieces
    ]
    end: Message = {"type": "http.request", "body": b"", "more_body": False}
    messages.append(end if whole else {"type": "http.disconnect"})

    async def receive() -> Message:
        return messages.pop(0)

    return Request({"type": "http", "headers": [(b"content-type", kind.encode())]}, receive)


def multipart(name: str, data: bytes) -> tuple[bytes, str]:
    head = f'--x\r\nContent-Disposition: form-data; name="f"; filename="{name}"\r\n\r\n'.encode()
    return head + data + b"\r\n--x--\r\n", "multipart/form-data; boundary=x"


async def test_fields_and_a_file_are_read() -> None:
    async with read_form(sent(b"a=+1+&b=x&b=y"), LIMIT) as fields:
        assert (fields.text("a"), fields.raw("a"), fields.text("none")) == ("1", " 1 ", "")
        assert fields.texts("b") == ("x", "y")
        assert await fields.file("a") is None
    async with read_form(sent(*multipart("k.py", b"x = 1")), LIMIT) as fields:
        file = await fields.file("f")
        assert file is not None
        assert (file.name, file.content) == ("k.py", b"x = 1")
        assert fields.text("f") == ""


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (sent(b"a=" + b"x" * LIMIT), "large-body"),
        (sent(*multipart("k.py", b"x" * LIMIT)), "large-body"),
        (sent(b"a=1", whole=False), "half-body"),
        (sent(b"no boundary", "multipart/form-data"), "bad-body"),
        (sent(NAMELESS, "multipart/form-data; boundary=x"), "bad-body"),
    ],
)
async def test_what_is_too_long_or_no_form_is_refused(request_: Request, code: str) -> None:
    with pytest.raises(UserError) as refused:
        async with read_form(request_, LIMIT):
            pass
    assert refused.value.code == code
