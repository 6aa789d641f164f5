"""Tests of handing in once over lines that break."""

import httpx
import pytest
from typing_extensions import override

from bot.domain.api.submissions import SubmissionAnswer
from bot.domain.errors import SetupError, UserError
from bot.remote.client import requests as outage
from bot.remote.client.requests import open_client, submit_once
from bot.remote.http import Server
from tests.doubles.agents import way_to
from tests.doubles.api import Api, make_api

ORDER = {"file_name": "k.py", "source": "x = 1\n", "mode": "ranked", "board": "vectoradd"}
AWAY = httpx.Response(503, json={"code": "away", "detail": "our fault"})
BUSY = httpx.Response(429, json={"code": "too-many-requests", "detail": "slower"})
BUG = httpx.Response(500, json={"code": "incident", "detail": "a bug"})


class Breaking(httpx.AsyncBaseTransport):
    """A way to the server which carries each request out, and then loses this in place of it."""

    def __init__(self, api: Api, *lost: Exception | httpx.Response) -> None:
        self.way, self.lost = way_to(api.door), list(lost)

    @override
    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        fault = self.lost.pop(0) if self.lost else None
        if isinstance(fault, httpx.ConnectError):
            raise fault
        answer = await self.way.handle_async_request(request)
        if isinstance(fault, Exception):
            raise fault
        return answer if fault is None else fault


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outage, "_FIRST_WAIT_S", 0.001)


async def made(
    api: Api, *lost: Exception | httpx.Response, patience_s: float = 60.0
) -> tuple[SubmissionAnswer, list[str]]:
    said: list[str] = []
    token = (await api.headers("bob"))["Authorization"].removeprefix("Bearer ")
    async with open_client(Server("http://podium.test", token), Breaking(api, *lost)) as requests:
        answer = await submit_once(
            requests, "submissions", ORDER, say=said.append, within_s=5.0, patience_s=patience_s
        )
    return answer, said


async def count(api: Api) -> int:
    return len(await api.place.store.submissions.to(api.place.board.id))


async def test_a_submission_whose_answers_are_lost_is_made_once() -> None:
    api = await make_api()
    broken = httpx.ReadError("reset"), AWAY, httpx.ConnectError("refused"), BUSY
    answer, said = await made(api, *broken)
    (stored,) = await api.place.store.submissions.to(api.place.board.id)
    assert answer.id == stored.id
    assert said == [
        "no answer from http://podium.test: reset; retrying for 60 s",
        "http://podium.test answers again",
    ]


async def test_two_commands_make_two_submissions() -> None:
    api = await make_api()
    first, said = await made(api)
    second, _ = await made(api)
    assert first.id != second.id
    assert said == []


async def test_a_server_that_cannot_be_reached_is_not_asked_on() -> None:
    api = await make_api()
    with pytest.raises(SetupError, match="refused; check the address"):
        await made(api, httpx.ConnectError("refused"))
    with pytest.raises(SetupError, match="a bug"):
        await made(api, BUG)
    with pytest.raises(UserError, match="slower"):
        await made(api, BUSY)


async def test_who_has_waited_enough_is_told_that_it_may_have_been_taken_in() -> None:
    api = await make_api()
    with pytest.raises(SetupError, match="retried for 0 s; it may have been accepted"):
        await made(api, httpx.ReadError("reset"), patience_s=0.0)
    assert await count(api) == 1
