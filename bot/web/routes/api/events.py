"""`/submissions/NUMBER/events`: every step of a submission as it happens."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent

from bot.domain.errors import StoreError, UserError
from bot.domain.ids import EventId, SubmissionId
from bot.domain.job import FINAL_STATES, Topic
from bot.services.lookup import seen_submission
from bot.web.auth import AnyViewer, still_looks
from bot.web.context import Door, door_of
from bot.web.routes.api.arguments import SubmissionNumber
from bot.web.routes.api.submission_bodies import event_answer

router = APIRouter(prefix="/submissions/{number}", tags=["submissions"])

LONGEST_S = 900.0
"""After which a watcher has to come again, which browsers do by themselves."""
_LOOK_EVERY = 10
"""Ticks of a second between two looks without a hint: hints may be lost."""
_AGAIN_MS = 1000
_END = "end"
LastEventId = Annotated[
    int, Header(alias="Last-Event-ID", ge=0, lt=1 << 63, description="The last `id` that you have")
]


async def watched(request: Request, number: SubmissionNumber, viewer: AnyViewer) -> SubmissionId:
    """A submission that the viewer may see; it is looked for before the stream begins."""
    return (await seen_submission(door_of(request).store, viewer, number)).id


@router.get("/events", response_class=EventSourceResponse)
async def events(
    request: Request,
    viewer: AnyViewer,
    submission: Annotated[SubmissionId, Depends(watched)],
    last_event_id: LastEventId = 0,
) -> AsyncIterator[ServerSentEvent]:
    """Steps of its jobs as `job`, then `end` once nothing will move any more.

    Whoever comes again with the last id misses none. Every quarter of an hour one has to, and
    once the token has ended or the board is not to be seen any more.
    """
    door = door_of(request)

    async def still() -> bool:
        await seen_submission(door.store, viewer, submission)
        return await still_looks(request, viewer)

    with suppress(TimeoutError, StoreError, UserError):  # come again: nothing is lost by it
        async with asyncio.timeout(LONGEST_S) as limit:
            async for event in _steps(door, submission, EventId(last_event_id), still):
                yield event
    del limit


async def _steps(
    door: Door, submission: SubmissionId, after: EventId, still: Callable[[], Awaitable[bool]]
) -> AsyncIterator[ServerSentEvent]:
    yield ServerSentEvent(comment="watching", retry=_AGAIN_MS)
    async with door.store.events.subscribe(frozenset({Topic.PROGRESS})) as hints:
        ended, ticks = False, 0
        while not ended:
            ended = await _has_ended(door, submission)  # before the events: so none is missed
            found = await door.store.jobs.events(submission, after)
            if not await still():
                return
            for event in found:
                after = event.id
                yield ServerSentEvent(data=event_answer(event), event="job", id=str(event.id))
            if ended:
                yield ServerSentEvent(data={"submission": submission}, event=_END, id=str(after))
                return
            while True:
                hint = await anext(hints)
                if door.closing.begun:
                    return
                ticks += hint is None
                concerned = hint is not None and hint.payload == str(submission)
                if concerned or (hint is None and ticks % _LOOK_EVERY == 0):
                    break


async def _has_ended(door: Door, submission: SubmissionId) -> bool:
    return all(job.state in FINAL_STATES for job in await door.store.jobs.of(submission))
