import asyncio
from collections.abc import Iterable

import pytest
from starlette.requests import Request
from starlette.types import Message

from bot.domain.agent import Held, HeldJob
from bot.domain.errors import UserError
from bot.frontends.web import bodies
from bot.frontends.web.bodies import read, written

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
    text = bytes(written(HELD).body)
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
