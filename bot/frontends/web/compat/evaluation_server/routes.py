"""`/evaluate`, `/compare` and `/`: a request is taken in, and its answer waited for."""

import asyncio

from starlette.requests import Request
from starlette.responses import Response

from bot.domain.access import Viewer
from bot.domain.errors import UserError
from bot.domain.submission import Submission
from bot.frontends.web.compat.evaluation_server import drawing, reading, requests
from bot.frontends.web.compat.evaluation_server.accept import NoRunnerError, accept
from bot.frontends.web.compat.evaluation_server.callers import submitter_of
from bot.frontends.web.compat.evaluation_server.drawing import Answer, Fault
from bot.frontends.web.compat.evaluation_server.http import answer
from bot.frontends.web.compat.evaluation_server.jobs import ClosingError, margin_s, served, wait
from bot.frontends.web.door import Door, door_of

MOST_WAITING = 256
"""Requests of one person that have not ended."""
_AGAIN_S = 1.0
"""Between looks for a runner while none is there at all, as just after a restart."""


async def evaluate(request: Request) -> Response:
    """Whether a kernel runs, and how long it takes."""
    begun = asyncio.get_running_loop().time()
    viewer = await submitter_of(request)
    asked = await reading.asked(request, reading.evaluation)
    return _drawn(await exchange(request, viewer, asked, begun))


async def compare(request: Request) -> Response:
    """Whether a kernel gives what its reference gives, and how long both take."""
    begun = asyncio.get_running_loop().time()
    viewer = await submitter_of(request)
    asked = await reading.asked(request, reading.comparison)
    return _drawn(await exchange(request, viewer, asked, begun))


async def exchange(
    request: Request, viewer: Viewer, asked: requests.Request, begun: float
) -> Answer:
    """The answer to what somebody asks, shortly before the caller hangs up at the latest.

    `begun` is the loop's time at which the caller began. A caller who goes away earlier changes
    nothing: the job ends when it is done, or is killed at the time that was given for it.
    """
    requests.require_limits(asked)
    door, address = door_of(request), address_of(request)
    if door.device_metrics and "device_metrics" not in asked.model_fields_set:
        asked = asked.model_copy(update={"device_metrics": True})
    until = begun + asked.timeout - margin_s(asked)
    try:
        made = await _accepted(door, viewer, asked, until)
    except NoRunnerError as error:
        return drawing.failure(500, Fault("no_runner", f"Job failed: {error}"), address)
    try:
        in_time = await wait(door.store, made.id, until, lambda: door.closing.begun)
    except ClosingError:
        words = f"this server stops; the job goes on, ask /job/{made.id} for its result"
        stopped = Fault("server_stops", words)
        return drawing.failure(503, stopped, address, await served(door.store, viewer, made.id))
    found = await served(door.store, viewer, made.id)
    # A profiler's tables may take a while to read.
    return await asyncio.to_thread(drawing.outcome, found, address, in_time=in_time)


async def _accepted(
    door: Door, viewer: Viewer, asked: requests.Request, until: float
) -> Submission:
    if len(await door.store.jobs.unfinished_of(viewer.person)) >= MOST_WAITING:
        words = f"{MOST_WAITING} of your jobs have not ended; wait for some of them"
        raise UserError("rate-limit", words)
    loop = asyncio.get_running_loop()
    while True:
        try:
            return await accept(door.store, door.clock, viewer.person, asked)
        except NoRunnerError as error:
            if error.any_there or door.closing.begun or loop.time() + _AGAIN_S >= until:
                raise
        await asyncio.sleep(_AGAIN_S)


def address_of(request: Request) -> str:
    """The address at which the caller has reached this door."""
    server = request.scope.get("server")
    return str(server[0]) if server else ""


def _drawn(found: Answer) -> Response:
    headers = {} if found.gpu_type is None else {"X-GPU-Type": found.gpu_type}
    return answer(found.status, found.body, headers)
