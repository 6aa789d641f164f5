"""`/api/v1/agents/...`: the requests of remote workers; all bodies are untrusted.

Every request is short, except the one that waits for notices. That one claims nothing, so it may be
interrupted. A claim whose response is lost expires with its lease, as after a crash.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Annotated

import structlog
from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import Base64Bytes

from bot.domain.api import workers as api
from bot.domain.ids import JobId
from bot.domain.job import Notice, Topic
from bot.services.parser_process import ParserProcess
from bot.web import auth, bodies
from bot.web.context import STREAM_HEADERS, Closing, WebContext, context_of
from runners.contract.evaluation import Evaluation, Progress

_log = structlog.get_logger(__name__)

router = APIRouter(prefix=api.PATH + "/{session}", include_in_schema=False)

_SHORT = 64 << 10
"""Up to this many bytes, an evaluation is validated quickly."""
EVALUATIONS = ParserProcess(10.0, patience_s=30.0)
"""Validates longer evaluations in another process: 16 MB of invalid values take five minutes."""
_TOPICS = frozenset({Topic.READY, Topic.CANCEL})
_DONE = 204


@router.post("/hello")
async def hello(request: Request, worker: auth.CallingWorker) -> Response:
    """Return the name and lease of a remote worker that starts."""
    lease_s = context_of(request).lease.total_seconds()
    _log.info("a remote worker starts", action="agent-hello", worker=worker.worker)
    return bodies.json_response(api.WorkerConfig(worker=worker.worker, lease_s=lease_s))


@router.post("/announce", status_code=_DONE)
async def announce(request: Request, worker: auth.CallingWorker) -> None:
    """Register the remote worker as live."""
    await worker.announce((await bodies.read(request, api.WorkerOffers, api.BODY_MAX)).offers)


@router.post("/leave", status_code=_DONE)
async def leave(worker: auth.CallingWorker) -> None:
    """Remove the remote worker from the live ones."""
    await worker.leave()


@router.post("/claim")
async def claim(request: Request, worker: auth.CallingWorker) -> Response:
    """Claim jobs for free slots."""
    free = await bodies.read(request, api.FreeSlots, api.BODY_MAX)
    named = free.runners or {}
    jobs = await worker.claim(free.slots, named)
    claimed = (api.ClaimedJob.of(job, with_pool=job.gpu in named) for job in jobs)
    return bodies.json_response(api.Claimed(jobs=tuple(claimed)))


@router.post("/beat")
async def heartbeat(request: Request, worker: auth.CallingWorker) -> Response:
    """Renew the leases of the worker's jobs; return the jobs it still holds."""
    held = (await bodies.read(request, api.Held, api.BODY_MAX)).jobs
    heartbeats = await worker.heartbeat({JobId(job.id): job.fence for job in held})
    renewed = (
        api.JobHeartbeat(id=each.job, cancel_requested=each.cancel_requested) for each in heartbeats
    )
    return bodies.json_response(api.Heartbeats(jobs=tuple(renewed)))


@router.get("/notices")
async def notices(
    request: Request,
    worker: auth.CallingWorker,  # noqa: ARG001 - for its token
    gpu: Annotated[list[api.GpuName], Query(max_length=64)],
    wait_s: Annotated[float, Query(ge=0, le=api.MOST_NOTICES_S)] = api.NOTICES_S,
) -> StreamingResponse:
    """Return the next notice for one of these GPU types; none after the wait.

    The response begins with an empty line once the subscription is active: a worker that then
    checks the queue and keeps waiting misses no job.
    """
    context = context_of(request)
    body = _notice_body(context, frozenset(gpu), wait_s)
    return StreamingResponse(body, media_type="application/json", headers=STREAM_HEADERS)


async def _notice_body(
    context: WebContext, gpus: frozenset[str], wait_s: float
) -> AsyncIterator[bytes]:
    async with context.store.events.subscribe(_TOPICS) as hints:
        yield b"\n"
        found: tuple[api.JobNotice, ...] = ()
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                found = await _next_notice(hints, gpus, context.closing)
        yield api.JobNotices(notices=found).model_dump_json().encode()


async def _next_notice(
    hints: AsyncIterator[Notice | None], gpus: frozenset[str], closing: Closing
) -> tuple[api.JobNotice, ...]:
    async for hint in hints:
        if hint is not None and _concerns(hint, gpus):
            return (api.JobNotice(topic=hint.topic, payload=hint.payload),)
        if closing.begun:
            break
    return ()


def _concerns(hint: Notice, gpus: frozenset[str]) -> bool:
    return hint.topic is Topic.CANCEL or hint.payload in gpus


@router.get("/jobs/{job}/{fence}/request")
async def evaluation_request(
    worker: auth.CallingWorker, job: api.BigInt, fence: api.BigInt
) -> Response:
    """Return the evaluation request of a claimed job."""
    return bodies.json_response(await worker.request(JobId(job), fence))


@router.post("/jobs/{job}/{fence}/attach", status_code=_DONE)
async def attach(
    request: Request, worker: auth.CallingWorker, job: api.BigInt, fence: api.BigInt
) -> None:
    """Record the runner's call."""
    body = await bodies.read(request, api.RunnerCall, api.BODY_MAX)
    await worker.attach(JobId(job), fence, body.call)


@router.post("/jobs/{job}/{fence}/progress", status_code=_DONE)
async def progress(
    request: Request, worker: auth.CallingWorker, job: api.BigInt, fence: api.BigInt
) -> None:
    """Record one progress update."""
    await worker.report_progress(
        JobId(job), fence, await bodies.read(request, Progress, api.BODY_MAX)
    )


@router.post("/jobs/{job}/{fence}/evaluation", status_code=_DONE)
async def evaluation(
    request: Request, worker: auth.CallingWorker, job: api.BigInt, fence: api.BigInt
) -> None:
    """Store the evaluation and end the job; repeating it is not an error."""
    body = await bodies.read_bytes(request, api.EVALUATION_MAX)
    if len(body) > _SHORT:
        await EVALUATIONS.call(require_evaluation, body)
    await worker.accept(JobId(job), fence, bodies.parse(Evaluation, body))


def require_evaluation(body: Base64Bytes) -> None:
    """Raise UserError when it is invalid; runs in another process, because errors may be many."""
    bodies.parse(Evaluation, body)


@router.post("/jobs/{job}/{fence}/give-up", status_code=_DONE)
async def give_up(
    request: Request, worker: auth.CallingWorker, job: api.BigInt, fence: api.BigInt
) -> None:
    """End an attempt without an evaluation."""
    body = await bodies.read(request, api.GivenUp, api.BODY_MAX)
    await worker.give_up(JobId(job), fence, body.why, body.error, used_s=body.used_s)


@router.post("/log", status_code=_DONE)
async def log(request: Request, worker: auth.CallingWorker) -> None:
    """Write the remote worker's log events to this server's log."""
    body = await bodies.read(request, api.LogLines, 4 * api.BODY_MAX)
    for line in body.lines:
        _log.info("a remote worker logged", action="agent-log", worker=worker.worker, line=line)
    if body.lost:
        message = "a remote worker logged too much"
        _log.warning(message, action="agent-log-lost", worker=worker.worker, lines=body.lost)
