"""Tests of following a submission through broken lines."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import replace

import httpx
import pytest
from typing_extensions import override

from bot.domain.errors import SetupError, StoreError, UserError
from bot.domain.job import JobState
from bot.domain.status import SubmissionStatus
from bot.remote.client import requests as outage
from bot.remote.client import watch as watching
from bot.remote.client.requests import open_client
from bot.remote.client.watch import watch
from bot.remote.http import Server
from tests.doubles.waited import SEVEN, make_status

QUEUED, RUNNING, DONE = map(make_status, (JobState.QUEUED, JobState.RUNNING, JobState.SUCCEEDED))
HALF = replace(RUNNING, jobs=(replace(RUNNING.jobs[0], stage="test", done=1, total=2),))


class Breaking(httpx.AsyncByteStream):
    """Some events, and then perhaps an end that is none."""

    def __init__(self, text: str, error: Exception | None = None) -> None:
        self._text = text
        self._error = error

    @override
    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._text.encode()
        if self._error is not None:
            raise self._error


def stream(text: str, error: Exception | None = None) -> httpx.Response:
    return httpx.Response(200, stream=Breaking(text, error))


class Server7:
    """A server that answers each request for events, and each for the status, in its turn."""

    def __init__(
        self, streams: list[httpx.Response | Exception], found: list[SubmissionStatus | Exception]
    ) -> None:
        self.resumed: list[str | None] = []
        self.said: list[str] = []
        self._streams = streams
        self._found = found

    def events(self, request: httpx.Request) -> httpx.Response:
        assert request.url.path == "/api/v1/submissions/7/events"
        self.resumed.append(request.headers.get("last-event-id"))
        answer = self._streams.pop(0) if self._streams else stream("")
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def read(self) -> SubmissionStatus:
        found = self._found.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    async def watched(self, patience_s: float = 5.0) -> list[SubmissionStatus]:
        transport = httpx.MockTransport(self.events)
        async with open_client(Server("https://podium.test", "secret"), transport) as requests:
            say: Callable[[str], None] = self.said.append
            told = watch(requests, SEVEN, self.read, say=say, patience_s=patience_s)
            async with aclosing(told) as readings:
                return [each async for each in readings]


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "MIN_POLL_S", 0.001)
    monkeypatch.setattr(outage, "_FIRST_WAIT_S", 0.001)


async def test_each_change_is_told_once_and_the_end_ends_it() -> None:
    server = Server7([stream("id: 1\ndata: {}\n\nid: 2\ndata: {}\n\n")], [QUEUED, QUEUED, DONE])
    assert await server.watched() == [QUEUED, DONE]
    assert server.said == []


async def test_a_broken_line_is_taken_up_where_it_broke() -> None:
    lost = httpx.ReadError("connection reset")
    server = Server7(
        [stream("id: 41\ndata: {}\n\n", lost), httpx.ConnectError("refused"), stream("")],
        [QUEUED, StoreError("refused"), StoreError("refused"), RUNNING, HALF, DONE],
    )
    assert await server.watched() == [QUEUED, RUNNING, HALF, DONE]
    assert server.resumed[0] is None
    assert set(server.resumed[1:]) == {"41"}
    assert server.said[0].endswith("retrying for 5 s")
    assert server.said[1] == "https://podium.test answers again"


async def test_a_server_that_stays_away_is_not_waited_for_for_ever() -> None:
    server = Server7([], [QUEUED, *[StoreError("no answer")] * 500])
    with pytest.raises(SetupError, match=r"no answer.*retried for 0 s"):
        await server.watched(patience_s=0.05)
    assert len(server.said) == 1


async def test_without_events_the_status_is_asked_for_and_nobody_is_alarmed() -> None:
    refused = [httpx.Response(502, text="<html>") for _ in range(5)]
    server = Server7([*refused], [QUEUED, QUEUED, QUEUED, RUNNING, DONE])
    assert await server.watched() == [QUEUED, RUNNING, DONE]
    assert server.said == []


async def test_a_server_that_is_busy_is_asked_again() -> None:
    server = Server7([], [UserError("too-many-requests", "too many requests"), DONE])
    assert await server.watched() == [DONE]


async def test_a_refusal_is_handed_on() -> None:
    server = Server7([], [UserError("unknown-submission", "there is no submission 7")])
    with pytest.raises(UserError, match="no submission 7"):
        await server.watched()


async def test_the_end_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "MIN_POLL_S", 60.0)
    server = Server7([stream("event: end\ndata: {}\n\n")], [QUEUED, DONE])
    async with asyncio.timeout(5):
        assert await server.watched() == [QUEUED, DONE]


async def test_a_proxy_that_holds_events_back_does_not_hold_the_result_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Silent(httpx.AsyncByteStream):
        @override
        async def __aiter__(self) -> AsyncIterator[bytes]:
            await asyncio.Event().wait()
            yield b""

    monkeypatch.setattr(watching, "POLL_S", 0.01)
    server = Server7([httpx.Response(200, stream=Silent())], [QUEUED, RUNNING, DONE])
    assert await server.watched() == [QUEUED, RUNNING, DONE]
    assert server.resumed == [None]
