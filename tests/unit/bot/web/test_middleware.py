"""Tests of HEAD: the headers of GET and nothing else, also of what never ends."""

import asyncio

import httpx
import pytest

from bot.domain.api.base import PATH
from tests.doubles.agents import make_door, way_to
from tests.doubles.clock import ManualClock
from tests.doubles.memory_store import MemoryStore
from tests.doubles.place import make_place


@pytest.mark.parametrize(
    ("path", "status"),
    [("/", 200), ("/boards/vectoradd", 200), ("/boards/none", 404), ("/healthz", 200),
     ("/queue/events", 200), (f"{PATH}/leaderboards/vectoradd/standings", 200),
     (f"{PATH}/me", 401), ("/sign-out", 405)],
)  # fmt: skip
async def test_a_head_is_that_of_the_answer_to_get(
    memory_store: MemoryStore, clock: ManualClock, path: str, status: int
) -> None:
    place = await make_place(memory_store, clock)
    way = way_to(make_door(place.store, place.clock))
    async with httpx.AsyncClient(transport=way, base_url="http://podium.test") as client:
        head = await asyncio.wait_for(client.head(path), 5)
        assert (head.status_code, head.content) == (status, b"")
        if not path.endswith("/events"):
            whole = dict((await client.get(path)).headers)
            del whole["x-request-id"]
            assert whole.items() <= dict(head.headers).items()


async def test_the_events_of_a_submission_are_asked_about_without_being_watched(
    memory_store: MemoryStore, clock: ManualClock
) -> None:
    place = await make_place(memory_store, clock)
    number = (await place.submit()).id
    way = way_to(make_door(place.store, place.clock))
    async with httpx.AsyncClient(transport=way, base_url="http://podium.test") as client:
        for path in (f"{PATH}/submissions/{number}/events", f"/submissions/{number}/events"):
            head = await asyncio.wait_for(client.head(path), 5)
            assert (head.status_code, head.content) == (200, b"")
            assert head.headers["content-type"].startswith("text/event-stream")
