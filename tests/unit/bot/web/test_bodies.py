import asyncio
from collections.abc import Iterable

import pytest
from starlette.requests import Request
from starlette.types import Message

from bot.domain.api.workers import Held, HeldJob
from bot.domain.errors import UserError
from bot.web import bodies
from bot.web.bodies import form_of, json_response, read, read_optional, require_simple
from runners.contract.wire import Wire
from tests.doubles.spooling import Spooled, spooling


class GivenUpLike(Wire):
    why: str = ""


HELD = Held(jobs=(HeldJob(id=1, fence=2),))


def request(pieces: Iterable[bytes], *, ends: bool = True) -> Request:
    messages: list[Message] = [
        {"type": "http.request", "body": piece, "more_body": True} for piece in pieces
    ]
    if ends:
        messages.append({"type": "http.request", "body": b"", "more_body": False})
    waiting = iter(messages)

    async def receive() -> Message:
        for message in waiting:
            return message
        await asyncio.Event().wait()
        raise AssertionError

    return Request({"type": "http", "method": "POST", "headers": []}, receive)


async def test_a_body_that_was_written_is_read_in_pieces() -> None:
    text = bytes(json_response(HELD).body)
    assert await read(request([text[:5], text[5:]]), Held, 100) == HELD


async def test_a_long_body_is_refused_before_all_of_it_is_there() -> None:
    with pytest.raises(UserError, match="at most 10 bytes"):
        await read(request([b"x" * 6, b"x" * 6], ends=False), Held, 10)


async def test_a_body_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "READ_S", 0.05)
    with pytest.raises(UserError, match="did not arrive"):
        await read(request([b"{"], ends=False), Held, 10)


async def test_what_does_not_fit_is_told_by_its_place_and_not_repeated() -> None:
    body = b'{"jobs": [{"id": "hunter2"}, {"id": 1, "fence": 2, "x": 3}, {}], "more": 1}'
    with pytest.raises(UserError) as refused:
        await read(request([body]), Held, 1000)
    words = refused.value.message
    assert "jobs.0.id" in words
    assert "and 3 more" in words
    assert "hunter2" not in words


async def test_without_a_body_the_defaults_hold_where_that_is_allowed() -> None:
    assert await read_optional(request([]), GivenUpLike, 10) == GivenUpLike()
    with pytest.raises(UserError, match=r"a JSON object with `why` \(optional\)"):
        await read_optional(request([b"["]), GivenUpLike, 10)


async def test_a_form_is_read_within_its_limit() -> None:
    part = b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--x--\r\n'
    for most in (len(part), len(part) - 1):
        asked = request([part[:7], part[7:]])
        asked.scope["headers"] = [(b"content-type", b"multipart/form-data; boundary=x")]
        if most == len(part):
            async with form_of(asked, most) as form:
                assert form["a"] == "1"
            continue
        with pytest.raises(UserError, match="too long"):
            async with form_of(asked, most):
                pass


@pytest.mark.parametrize("kind", [b"multipart/form-data", b"multipart/form-data; boundary=y"])
async def test_what_is_no_form_is_refused(kind: bytes) -> None:
    asked = request([b"--x\r\nnonsense"])
    asked.scope["headers"] = [(b"content-type", kind)]
    with pytest.raises(UserError, match="form"):
        async with form_of(asked, 100):
            pass


TEXT = b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n%b\r\n--x--\r\n'


@pytest.mark.parametrize(
    "charset",
    [
        b"punycode",
        b"idna",
        b"undefined",
        b"unicode_escape",
        b"utf-7",
        b"latin-1",
        b"utf-16",
        b"none",
    ],
)
async def test_no_charset_but_utf_8_is_read(charset: bytes) -> None:
    asked = request([TEXT % (b"-" + b"9" * 60_000)])
    kind = b"multipart/form-data; boundary=x; charset=" + charset
    asked.scope["headers"] = [(b"content-type", kind)]
    with pytest.raises(UserError, match="send it as UTF-8") as refused:
        async with form_of(asked, 64 << 10):
            pass
    assert refused.value.code == "bad-body"


@pytest.mark.parametrize("part", [TEXT % b"\xff", (TEXT % b"a").replace(b'"a"', b'"\xff"')])
async def test_what_is_no_utf_8_is_refused_and_not_guessed_at(part: bytes) -> None:
    asked = request([part])
    asked.scope["headers"] = [(b"content-type", b"multipart/form-data; boundary=x; charset=UTF-8")]
    with pytest.raises(UserError, match="is not UTF-8; send it as UTF-8"):
        async with form_of(asked, 1000):
            pass


FILE = b'--x\r\nContent-Disposition: form-data; name="f"; filename="a.zip"\r\n\r\n'


@pytest.fixture
def spooled(monkeypatch: pytest.MonkeyPatch) -> Spooled:
    return spooling(monkeypatch)


@pytest.mark.parametrize(
    "rest",
    [
        b"data that breaks off",
        b"data\r\n--x",
        b"data\r\n--x\r\n",
        b"data\r\n" + FILE + b"a second",
        b"data\r\n--x\r\nnonsense",
        b"x" * (2 << 20),  # more than is kept in memory
    ],
)
async def test_a_form_that_breaks_off_is_refused_and_leaves_no_file_open(
    spooled: Spooled, rest: bytes
) -> None:
    asked = request([FILE, rest])
    asked.scope["headers"] = [(b"content-type", b"multipart/form-data; boundary=x")]
    with pytest.raises(UserError, match="the form cannot be read"):
        async with form_of(asked, 4 << 20):
            pass
    assert spooled
    assert all(each.closed for each in spooled)


async def test_the_files_of_a_form_are_closed_with_it_whatever_ends_it(
    spooled: Spooled,
) -> None:
    async def used() -> None:
        asked = request([FILE, b"data\r\n--x--\r\n"])
        asked.scope["headers"] = [(b"content-type", b"multipart/form-data; boundary=x")]
        async with form_of(asked, 1000):
            assert not spooled[0].closed
            await asyncio.sleep(60)

    using = asyncio.create_task(used())
    await asyncio.sleep(0.01)
    using.cancel()
    with pytest.raises(asyncio.CancelledError):
        await using
    assert [each.closed for each in spooled] == [True]


@pytest.mark.parametrize("text", [b'""', rb'"\\"', rb'"\""', rb'"\\\""', b'"a"', b'"\\u0041"'])
def test_each_string_counts_whatever_it_ends_with(text: bytes) -> None:
    require_simple(b"[" + b",".join([text] * 20) + b"]", texts=20)
    with pytest.raises(UserError, match="too many values"):
        require_simple(b"[" + b",".join([text] * 21) + b"]", texts=20)


@pytest.mark.parametrize("inside", [rb"\"" * 500, rb"\\" * 500, b"[" * 500, rb"\\\"[" * 500])
def test_only_what_is_outside_of_strings_must_be_short(inside: bytes) -> None:
    for end in (b'"]', b'"', b""):
        require_simple(b'["' + inside + end, around=2)
    with pytest.raises(UserError, match="too many values"):
        require_simple(b'["' + inside + b'", ]', around=3)
