from dataclasses import replace

import httpx
import pytest

from bot.web.context import WebContext
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
