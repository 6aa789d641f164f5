"""`/api/v1/submissions`, and the events of each."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Header, Path, Request, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent

from bot.domain.accounts import Caller
from bot.domain.api import submissions as api
from bot.domain.api.base import BODY_MAX
from bot.domain.errors import StoreError, UserError
from bot.domain.ids import EventId, SubmissionId
from bot.domain.job import FINAL_STATES, Topic
from bot.services import history, lookup, moderation, status, submissions
from bot.web.auth import AnyViewer, FromPerson, MaySubmit, has_same_viewer
from bot.web.bodies import read_optional
from bot.web.context import WebContext, context_of
from bot.web.routes.api import openapi, submission_bodies

_submissions = APIRouter(
    prefix="/submissions", tags=["submissions"], dependencies=[Depends(openapi.uncached)]
)

_BYTES: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": {"application/octet-stream": {"schema": {"type": "string"}}}}
}


_MADE: Final[dict[int | str, dict[str, Any]]] = {
    201: {
        "headers": {
            "Location": {
                "description": "The new submission's address, also the body's `url`",
                "schema": {"type": "string", "format": "uri-reference"},
            }
        }
    }
}
"""The header of responses with a new submission."""


@_submissions.post("", status_code=201, responses=_MADE, openapi_extra=submission_bodies.ORDER_BODY)
async def create(
    request: Request,
    response: Response,
    viewer: MaySubmit,
    idempotency_key: openapi.IdempotencyKey = None,
) -> api.SubmissionAnswer:
    """Submit a file, as JSON or as a form with the file; it then waits in the queue."""
    context, key = context_of(request), openapi.key_in(idempotency_key)
    order = replace(await submission_bodies.order_of(request, viewer), key=key)
    submission = await submissions.submit(context.store, context.clock, order)
    return await _created(context, viewer, submission.id, response)


@_submissions.get("")
async def own(
    request: Request,
    viewer: FromPerson,
    *,
    board: openapi.BoardQuery = None,
    limit: openapi.PageLimit = 50,
    cursor: openapi.Cursor = None,
) -> api.HistoryAnswer:
    """Your own submissions, newest first."""
    before = openapi.number_of(cursor)
    entries = await history.submission_history(
        context_of(request).store,
        viewer,
        board,
        before=None if before is None else SubmissionId(before),
        limit=limit + 1,
    )
    return api.HistoryAnswer.of(entries, limit)


@_submissions.get("/{number}")
async def show(
    request: Request, number: openapi.SubmissionNumber, viewer: AnyViewer
) -> api.SubmissionAnswer:
    """The state and results of a submission; others see no log while its source is hidden."""
    return await submission_bodies.submission_answer(context_of(request), viewer, number)


@_submissions.get("/{number}/source")
async def source(
    request: Request, number: openapi.SubmissionNumber, viewer: AnyViewer
) -> api.SourceAnswer:
    """Your own source at any time; another person's if the board shows sources."""
    context = context_of(request)
    source_file = await status.source(context.store, context.clock, viewer, number)
    return api.SourceAnswer(
        submission=number, file_name=source_file.file_name, text=source_file.text
    )


@_submissions.get("/{number}/files")
async def files(
    request: Request, number: openapi.SubmissionNumber, viewer: AnyViewer
) -> api.ProfileFiles:
    """The names of a profile's files."""
    context = context_of(request)
    found = await status.read_files(context.store, context.clock, viewer, number)
    return api.ProfileFiles(
        files=tuple(api.ProfileFile(gpu=each.gpu, name=each.file.name) for each in found)
    )


@_submissions.get("/{number}/files/{gpu}/{name}", response_class=Response, responses=_BYTES)
async def file(
    request: Request,
    number: openapi.SubmissionNumber,
    viewer: AnyViewer,
    *,
    gpu: Annotated[str, Path(max_length=32)],
    name: Annotated[str, Path(max_length=64)],
) -> Response:
    """One file of a profile, such as an `.ncu-rep`."""
    context = context_of(request)
    for each in await status.read_files(context.store, context.clock, viewer, number):
        if (each.gpu, each.file.name) == (gpu, name):
            headers = {**openapi.NO_STORE, "Content-Disposition": f'attachment; filename="{name}"'}
            media_type = "application/octet-stream"
            content = await asyncio.to_thread(each.file.content)
            return Response(content, media_type=media_type, headers=headers)
    raise UserError("unknown-file", f"submission {number} has no such file; list its files")


@_submissions.post("/{number}/cancel")
async def cancel(
    request: Request, number: openapi.SubmissionNumber, viewer: MaySubmit
) -> api.Cancelled:
    """Stop your submission: queued jobs end at once, running ones within seconds."""
    return api.Cancelled(
        stopped=await submissions.cancel(context_of(request).store, viewer, number)
    )


@_submissions.post(
    "/{number}/rerun",
    status_code=201,
    responses=_MADE,
    openapi_extra=openapi.takes(api.RerunOrder, needed=False),
)
async def rerun(
    request: Request,
    response: Response,
    number: openapi.SubmissionNumber,
    viewer: MaySubmit,
    *,
    idempotency_key: openapi.IdempotencyKey = None,
) -> api.SubmissionAnswer:
    """Submit the same source again, optionally in another mode."""
    context, key = context_of(request), openapi.key_in(idempotency_key)
    body = await read_optional(request, api.RerunOrder, BODY_MAX)
    rerun_request = submissions.RerunRequest(viewer, number, body.mode, key=key)
    submission = await submissions.rerun(context.store, context.clock, rerun_request)
    return await _created(context, viewer, submission.id, response)


@_submissions.post("/{number}/withdraw", openapi_extra=openapi.takes(api.Withdrawal, needed=False))
async def withdraw(
    request: Request, number: openapi.SubmissionNumber, viewer: MaySubmit
) -> api.SubmissionAnswer:
    """Take your submission off its board permanently; its result stays."""
    context, body = context_of(request), await read_optional(request, api.Withdrawal, BODY_MAX)
    await moderation.withdraw(context.store, viewer, body.reason, number)
    return await submission_bodies.submission_answer(context, viewer, number)


async def _created(
    context: WebContext, viewer: Caller, number: SubmissionId, response: Response
) -> api.SubmissionAnswer:
    response.headers["Location"] = submission_bodies.address_of(number)
    return await submission_bodies.submission_answer(context, viewer, number)


_events = APIRouter(prefix="/submissions/{number}", tags=["submissions"])

LONGEST_S = 900.0
"""Seconds after which a client must reconnect, which browsers do by themselves."""
_POLL_EVERY = 10
"""Seconds between two polls without a notice, because notices may be lost."""
_RETRY_MS = 1000
_END = "end"
LastEventId = Annotated[
    int, Header(alias="Last-Event-ID", ge=0, lt=1 << 63, description="The last `id` that you have")
]


async def watched(
    request: Request, number: openapi.SubmissionNumber, viewer: AnyViewer
) -> SubmissionId:
    """Return a submission that the viewer may see, before the stream begins."""
    return (await lookup.visible_submission(context_of(request).store, viewer, number)).id


@_events.get("/events", response_class=EventSourceResponse)
async def events(
    request: Request,
    viewer: AnyViewer,
    submission: Annotated[SubmissionId, Depends(watched)],
    last_event_id: LastEventId = 0,
) -> AsyncIterator[ServerSentEvent]:
    """Each step of its jobs as `job`, then `end` once all jobs have ended.

    A client that reconnects with the last id misses none. The stream ends after a quarter of an
    hour, when the token expires or is revoked, and when the viewer may no longer see the board.
    """
    context = context_of(request)

    async def is_allowed() -> bool:
        await lookup.visible_submission(context.store, viewer, submission)
        return await has_same_viewer(request, viewer)

    with suppress(TimeoutError, StoreError, UserError):  # the client reconnects and misses none
        async with asyncio.timeout(LONGEST_S):
            async for event in _steps(context, submission, EventId(last_event_id), is_allowed):
                yield event


async def _steps(
    context: WebContext,
    submission: SubmissionId,
    after: EventId,
    is_allowed: Callable[[], Awaitable[bool]],
) -> AsyncIterator[ServerSentEvent]:
    yield ServerSentEvent(comment="watching", retry=_RETRY_MS)
    async with context.store.events.subscribe(frozenset({Topic.PROGRESS})) as hints:
        ended, ticks = False, 0
        while not ended:
            # Read before the events, so that none is missed.
            ended = await _has_ended(context, submission)
            found = await context.store.jobs.events(submission, after)
            if not await is_allowed():
                return
            for event in found:
                after = event.id
                yield ServerSentEvent(data=api.Event.of(event), event="job", id=str(event.id))
            if ended:
                yield ServerSentEvent(data={"submission": submission}, event=_END, id=str(after))
                return
            while True:
                hint = await anext(hints)
                if context.closing.begun:
                    return
                ticks += hint is None
                concerned = hint is not None and hint.payload == str(submission)
                if concerned or (hint is None and ticks % _POLL_EVERY == 0):
                    break


async def _has_ended(context: WebContext, submission: SubmissionId) -> bool:
    return all(job.state in FINAL_STATES for job in await context.store.jobs.of(submission))


router = APIRouter()
router.include_router(_submissions)
router.include_router(_events)
