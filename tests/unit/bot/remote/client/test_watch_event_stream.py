"""Tests of server-sent events."""

from collections.abc import AsyncIterator

import pytest

from bot.domain.errors import StoreError
from bot.remote.client import watch
from bot.remote.client.watch import SentEvent, events

THREE = (
    b": a comment\n\n"
    b"id: 7\nevent: step\ndata: one\n\n"
    b"data: two\ndata:lines\r\nretry: 5\n\n"
    b"id: 9\n\n"
    b"data: last\n\n"
    b"data: cut off"
)


async def _pieces(text: bytes, size: int) -> AsyncIterator[bytes]:
    for start in range(0, len(text), size):
        yield text[start : start + size]


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
async def test_events_are_read_however_the_answer_is_cut(size: int) -> None:
    assert [each async for each in events(_pieces(THREE, size))] == [
        SentEvent("step", "one", "7"),
        SentEvent("message", "two\nlines", "7"),
        SentEvent("message", "last", "9"),
    ]


@pytest.mark.parametrize("text", [b"x" * 400, b"data: x\n" * 80, b": x\n" * 200])
async def test_an_endless_event_is_not_kept(text: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "EVENT_MAX", 300)
    with pytest.raises(StoreError, match="more than 300 bytes"):
        async for _ in events(_pieces(text, 64)):
            pass


async def test_what_is_no_text_does_no_harm() -> None:
    (found,) = [each async for each in events(_pieces(b"data: \xff\n\n", 100))]
    assert found.data == "\N{REPLACEMENT CHARACTER}"
