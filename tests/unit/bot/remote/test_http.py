import asyncio
from collections.abc import AsyncIterator, Callable

import httpx
import pytest
from typing_extensions import override

from bot.domain.api.workers import WorkerConfig
from bot.domain.errors import StoreError, UserError
from bot.remote import http as module
from bot.remote.http import LeaseGoneError, RefusedError, Server, connected

SERVER = Server("https://podium.test", "secret-token")
GREETING = WorkerConfig(worker="box:1", lease_s=30.0)

Answer = Callable[[httpx.Request], httpx.Response]


def problem(status: int, code: str, detail: str = "words") -> httpx.Response:
    return httpx.Response(status, json={"code": code, "detail": detail})


async def greeted(answer: Answer) -> WorkerConfig:
    async with connected(SERVER, "abc", "1.0", httpx.MockTransport(answer)) as connection:
        return await connection.post("hello", None, WorkerConfig)


async def test_every_request_has_the_token_and_the_harness() -> None:
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(200, content=GREETING.model_dump_json())

    assert await greeted(answer) == GREETING
    (request,) = asked
    assert str(request.url) == "https://podium.test/api/v1/agents/abc/hello"
    assert request.headers["authorization"] == "Bearer secret-token"
    assert request.headers["podium-harness"] == "1.0"


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (problem(401, "bad-token"), UserError, "refuses the token: words"),
        (problem(403, "forbidden"), UserError, "refuses the token"),
        (problem(409, "harness-version", "pip install"), UserError, "pip install"),
        (problem(409, "lease-lost"), LeaseGoneError, "words"),
        (problem(503, "away"), StoreError, "503 words"),
        (problem(500, "incident"), StoreError, "500 words"),
        (problem(429, "slow-down"), StoreError, "429 words"),
        (problem(422, "no-answer"), RefusedError, "no-answer: words"),
        (httpx.Response(502, text="<html>"), StoreError, "502"),
        (httpx.Response(404, text="<html>"), UserError, "is not a Podium server"),
        (httpx.Response(404, json=[1]), UserError, "is not a Podium server"),
        (httpx.Response(200, text="<html>"), StoreError, "not a valid WorkerConfig"),
        (httpx.Response(200, json={"worker": "x"}), StoreError, "not a valid WorkerConfig"),
    ],
)
async def test_every_failure_is_of_one_family(
    answer: httpx.Response, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        await greeted(lambda _: answer)


async def test_the_token_is_not_carried_elsewhere() -> None:
    hosts: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        hosts.append(request.url.host)
        return httpx.Response(307, headers={"Location": "https://evil.test/"})

    with pytest.raises(UserError, match=r"redirects to https://evil\.test/"):
        await greeted(answer)
    assert hosts == ["podium.test"]


async def test_a_server_that_cannot_be_reached_is_away() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("no route", request=request)

    with pytest.raises(StoreError, match=r"no answer from https://podium\.test: no route"):
        await greeted(answer)


class _Silent(httpx.AsyncBaseTransport):
    @override
    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await asyncio.Event().wait()
        raise AssertionError


async def test_no_answer_is_waited_for_for_ever() -> None:
    async with connected(SERVER, "abc", "1.0", _Silent()) as connection:
        with pytest.raises(StoreError, match=r"no answer from https://podium\.test within 0 s"):
            await connection.send("leave", within_s=0.05)


async def test_an_answer_without_end_is_not_read_to_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "RESPONSE_MAX", 1000)
    given = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal given
        while True:
            given += 1
            yield b"x" * 300

    with pytest.raises(StoreError, match="longer than 1000 bytes"):
        await greeted(lambda _: httpx.Response(200, content=endless()))
    assert given == 4
