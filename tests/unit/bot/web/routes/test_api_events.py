"""Following a submission over HTTP."""

import asyncio
from dataclasses import dataclass

import httpx
import pytest

from bot.domain.ids import EventId
from bot.domain.job import JobState
from bot.web.routes.api import submissions as module
from tests.doubles.api import Api


@dataclass(frozen=True, slots=True)
class Event:
    name: str
    id: int


async def read(client: httpx.AsyncClient, number: int, last: int | None = None) -> list[Event]:
    """Everything up to the end of the stream."""
    headers = {} if last is None else {"Last-Event-ID": str(last)}
    answer = await client.get(f"/submissions/{number}/events", headers=headers)
    assert answer.headers["content-type"].startswith("text/event-stream")
    fields = [
        dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        for block in answer.text.split("\n\n")
    ]
    return [Event(each["event"], int(each["id"])) for each in fields if "event" in each]


async def test_a_watcher_sees_each_step_and_the_end(api: Api) -> None:
    submission = await api.place.submit()
    async with api.asking() as anybody:
        watching = asyncio.create_task(read(anybody, submission.id))
        await asyncio.sleep(0.05)
        await api.place.judged(submission)
        seen = await asyncio.wait_for(watching, 10)
        assert [each.name for each in seen] == ["job", "job", "job", "end"]
        stored = await api.place.store.jobs.events(submission.id, EventId(0))
        assert [each.kind for each in stored] == [
            JobState.QUEUED, JobState.RUNNING, JobState.SUCCEEDED,
        ]  # fmt: skip
        assert [each.id for each in seen] == [*(each.id for each in stored), stored[-1].id]


async def test_who_comes_again_gets_what_was_missed_and_nothing_twice(api: Api) -> None:
    submission = await api.place.submit()
    await api.place.judged(submission)
    async with api.asking() as anybody:
        everything = await read(anybody, submission.id)
        for place, event in enumerate(everything[:-1], start=1):
            assert await read(anybody, submission.id, event.id) == everything[place:]


async def test_a_stream_ends_with_the_door_and_after_its_time(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    submission = await api.place.submit()
    async with api.asking() as anybody:
        with monkeypatch.context() as quick:
            quick.setattr(module, "LONGEST_S", 0.05)
            assert [each.name for each in await read(anybody, submission.id)] == ["job"]
        api.door.closing.begun = True
        seen = await asyncio.wait_for(read(anybody, submission.id), 5)
        assert [each.name for each in seen] == ["job"]


async def test_what_one_may_not_see_is_refused_before_the_stream(api: Api) -> None:
    async with api.asking() as anybody:
        answer = await anybody.get("/submissions/999/events")
        assert (answer.status_code, answer.json()["code"]) == (404, "unknown-submission")
        path = f"/submissions/{(await api.place.submit()).id}/events"
        wrong = await anybody.get(path, headers={"Last-Event-ID": "x"})
        assert wrong.status_code == 422
