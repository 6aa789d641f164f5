import asyncio
from dataclasses import replace

import httpx
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from bot.web.context import WebContext
from bot.web.middleware import SecurityHeaders
from tests.doubles.agents import make_door, way_to
from tests.doubles.clock import ManualClock
from tests.doubles.memory_store import MemoryStore

PATHS = ["/", "/none", "/healthz", "/readyz", "/metrics", "/queue/", "/api/v1/me", "/eval/health",
         "/popcorn/leaderboards", "/api/v1/openapi.json", "/eval/mcp", "/api/v1/agents/x/hello",
         "/docs", "/sign-in"]  # fmt: skip


@pytest.fixture
def door(memory_store: MemoryStore, clock: ManualClock) -> WebContext:
    return make_door(memory_store, clock)


@pytest.mark.parametrize("public", [None, "http://podium.test", "https://podium.example.org"])
async def test_every_answer_has_them(door: WebContext, public: str | None) -> None:
    way = way_to(replace(door, public_url=public))
    https = (public or "").startswith("https")
    async with httpx.AsyncClient(transport=way, base_url="http://podium.test") as client:
        for path in PATHS:
            answer = await client.get(path)
            assert answer.headers["x-content-type-options"] == "nosniff", path
            assert ("strict-transport-security" in answer.headers) == https, path


async def test_the_host_of_a_stranger_is_told_to_nobody(door: WebContext) -> None:
    hosts = ("evil.test", "evil.test/", "a@evil.test", "EVIL.test:80", "evil.test?", "evil.test\\")
    for public in (None, "https://podium.example.org"):
        way = way_to(replace(door, public_url=public))
        async with httpx.AsyncClient(transport=way, base_url="http://podium.test:80") as client:
            for host in hosts:
                for path in (*PATHS, "/docs/", "/boards/", "/api/v1/queue/"):
                    answer = await client.get(path, headers={"Host": host})
                    told = f"{answer.headers} {answer.text}".lower()
                    assert "evil.test" not in told, (host, path)


async def test_who_comes_while_too_many_are_answered_is_asked_to_come_again() -> None:
    begun, end = asyncio.Event(), asyncio.Event()

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        begun.set()
        await end.wait()
        await PlainTextResponse("there")(scope, receive, send)

    way = httpx.ASGITransport(SecurityHeaders(slow, "https://podium.example.org", 1))
    async with httpx.AsyncClient(transport=way, base_url="http://podium.test") as client:
        first = asyncio.create_task(client.get("/"))
        await begun.wait()
        refused = await client.get("/")
        end.set()
        answered = [await first, await client.get("/")]

    assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
    assert "try again" in refused.text
    assert refused.headers["x-content-type-options"] == "nosniff"
    assert "strict-transport-security" in refused.headers
    assert [each.text for each in answered] == ["there", "there"]
