"""What becomes of a submission, as KernelBot's server-sent events: status, result, error."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress

import anyio
import structlog

from bot.domain.errors import StoreError, UserError
from bot.domain.rights import Caller
from bot.domain.status import SubmissionStatus
from bot.domain.submission import Submission
from bot.frontends.web.door import Door
from bot.frontends.web.routes.popcorn.ending import last_event
from bot.frontends.web.routes.popcorn.standing import progress_of
from bot.services.cancel import cancel
from bot.services.status import watch

_log = structlog.get_logger(__name__)

BEAT_S = 15.0
"""The longest silence."""
LOOK_S = 1.0
"""How soon it is noticed that the door closes; nothing new is told sooner after the last."""
_CANCEL_S = 5.0
_AWAY = "our fault, not yours: the service is away; submission {} goes on, ask for it later"


async def told(
    door: Door, caller: Caller, submission: Submission, *, by_ncu: bool = False
) -> AsyncGenerator[bytes, None]:
    """The events up to the end; a submission whose watcher is gone before that is cancelled."""
    ended = False
    try:
        async with aclosing(_events(door, submission, by_ncu=by_ncu)) as events:
            async for event in events:
                yield event
        ended = True
    finally:
        if not ended and not door.closing.begun:
            with anyio.move_on_after(_CANCEL_S, shield=True):
                await _give_up(door, caller, submission)


async def _give_up(door: Door, caller: Caller, submission: Submission) -> None:
    _log.info("who followed hung up", action="popcorn-hung-up", submission=submission.id)
    try:
        await cancel(door.store, caller, submission.id)
    except (StoreError, UserError) as error:
        _log.warning("not cancelled", action="popcorn-not-cancelled", error=str(error))


async def _events(
    door: Door, submission: Submission, *, by_ncu: bool
) -> AsyncGenerator[bytes, None]:
    clock = asyncio.get_running_loop().time
    begun, said, said_at = clock(), "", -BEAT_S
    last: SubmissionStatus | None = None
    try:
        async with aclosing(_readings(door, submission)) as readings:
            async for last in readings:
                words = "; ".join(progress_of(job) for job in last.jobs)
                if not last.is_final and (words != said or clock() - said_at >= BEAT_S):
                    said, said_at = words, clock()
                    yield _status(words, clock() - begun)
        if last is not None and last.is_final:
            end = await last_event(door.store, last, by_ncu=by_ncu)
            yield _event(end.event, end.body)
            return
    except StoreError as error:
        _log.warning("a stream broke off", action="popcorn-broke-off", error=str(error))
    except UserError as error:  # its board was deleted
        yield _event("error", {"status": "error", "detail": error.message, "status_code": 404})
        return
    yield _event("error", _away(submission))


async def _readings(door: Door, submission: Submission) -> AsyncGenerator[SubmissionStatus, None]:
    """The newest reading about once a second, up to the final one or the door's closing."""
    watching = watch(door.store, submission.id)
    coming: asyncio.Future[SubmissionStatus | None] | None = None
    last: SubmissionStatus | None = None
    try:
        while not door.closing.begun:
            if coming is None:
                coming = asyncio.ensure_future(anext(watching, None))
            if (await asyncio.wait({coming}, timeout=LOOK_S))[0]:
                found, coming = coming.result(), None
                last = found or last
            if last is not None:
                yield last
                if last.is_final:
                    return
    finally:
        if coming is not None:
            coming.cancel()
            with suppress(asyncio.CancelledError):
                await coming


def _status(words: str, elapsed_s: float) -> bytes:
    body = {"status": "processing", "elapsed_time": round(elapsed_s, 1), "message": words}
    return _event("status", body)


def _away(submission: Submission) -> dict[str, object]:
    return {"status": "error", "detail": _AWAY.format(submission.id), "status_code": 503}


def _event(name: str, body: dict[str, object]) -> bytes:
    return f"event: {name}\ndata: {json.dumps(body)}\n\n".encode()
