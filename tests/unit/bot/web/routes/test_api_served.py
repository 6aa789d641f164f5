"""The routes behind the real server: streams that end with it, and who asks behind a proxy."""

import asyncio

import httpx
import pytest

from bot.web.app import serving
from bot.web.context import HttpSettings
from tests.doubles.api import Api, make_api


async def test_a_server_that_closes_ends_its_streams_at_once_and_cleanly(api: Api) -> None:
    submission = await api.place.submit()
    loop, begun = asyncio.get_running_loop(), asyncio.Event()
    lines: list[str] = []

    async def watch(url: str) -> None:
        path = f"{url}/api/v1/submissions/{submission.id}/events"
        async with httpx.AsyncClient() as client, client.stream("GET", path) as answer:
            async for line in answer.aiter_lines():
                lines.append(line)
                if line.startswith("id:"):
                    begun.set()

    async with serving(api.door, HttpSettings("127.0.0.1", 0)) as url:
        watching = asyncio.create_task(watch(url))
        await asyncio.wait_for(begun.wait(), 10)
        left_at = loop.time()
    await asyncio.wait_for(watching, 5)  # no error: the stream was ended, not cut
    assert loop.time() - left_at < 4
    assert lines.count("event: job") == 1


@pytest.mark.parametrize(("proxies", "found"), [((), [200, 429]), (("127.0.0.1",), [200, 200])])
async def test_who_asks_is_whom_a_known_proxy_names(
    proxies: tuple[str, ...], found: list[int]
) -> None:
    api = await make_api(requests_per_minute=1)
    settings = HttpSettings("127.0.0.1", 0, proxies=proxies)
    async with (
        serving(api.door, settings) as url,
        httpx.AsyncClient(base_url=url) as client,
    ):
        asked = [
            await client.get("/api/v1/queue", headers={"X-Forwarded-For": address})
            for address in ("192.0.2.1", "192.0.2.2")
        ]
    assert [each.status_code for each in asked] == found
