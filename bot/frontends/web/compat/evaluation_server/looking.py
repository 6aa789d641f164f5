"""`/health`, `/job/ID`, `/stats` and `/admin/cleanup-jobs`."""

import asyncio
import time

from starlette.requests import Request
from starlette.responses import Response

from bot.domain.errors import StoreError, UserError
from bot.domain.ids import SubmissionId
from bot.frontends.web.compat.evaluation_server import drawing, metrics
from bot.frontends.web.compat.evaluation_server.callers import reader_of, submitter_of
from bot.frontends.web.compat.evaluation_server.forget import KEPT_LEAST, forget
from bot.frontends.web.compat.evaluation_server.http import answer
from bot.frontends.web.compat.evaluation_server.jobs import served
from bot.frontends.web.compat.evaluation_server.routes import address_of
from bot.frontends.web.compat.evaluation_server.statistics import newest, slots, tallies
from bot.frontends.web.door import door_of

_LOADED = time.monotonic()
_MOST_DIGITS = 18


async def health(request: Request) -> Response:
    """Whether requests can be judged now; anybody may ask."""
    store = door_of(request).store
    try:
        counted, there = await tallies(store), await slots(store)
    except StoreError:
        return answer(500, {"status": "unhealthy", "error": "the database is away"})
    free = there.free
    body: dict[str, object] = {
        "status": "healthy",
        "job_stats": metrics.job_stats(counted),
        "gpu_manager": {"available_gpus": sum(free.values()), "slots": there.offered, "free": free},
        "gpu_available": there.gpus > 0,
        "gpu_count": there.gpus,
    }
    if not there.offered:
        error = "no runner is there: start one on a machine with a GPU"
        return answer(500, {**body, "status": "unhealthy", "error": error})
    return answer(200, body)


async def job(request: Request) -> Response:
    """One's own job, with its result once there is one."""
    viewer = await reader_of(request)
    number = str(request.path_params["job_id"])
    if not number.isascii() or not number.isdigit() or len(number) > _MOST_DIGITS:
        raise UserError("unknown-job", f"Job {number[:_MOST_DIGITS]} not found")
    found = await served(door_of(request).store, viewer, SubmissionId(int(number)))
    return answer(200, await asyncio.to_thread(drawing.job, found, address_of(request)))


async def stats(request: Request) -> Response:
    """Counts over the requests that are kept."""
    await reader_of(request)
    door = door_of(request)
    now, uptime_s = door.clock.now(), time.monotonic() - _LOADED
    counted, runs = await tallies(door.store), await newest(door.store)
    return answer(
        200,
        {
            "job_stats": metrics.job_stats(counted),
            "compilation_metrics": metrics.compilation(runs),
            "profiling_metrics": metrics.profiling(runs),
            "gpu_utilization": metrics.utilization(runs),
            "throughput": metrics.throughput(counted, runs, now, uptime_s),
            "timestamp": now.timestamp(),
        },
    )


async def cleanup(request: Request) -> Response:
    """Remove one's own jobs that ended a while ago; an admin's token removes everybody's."""
    viewer = await submitter_of(request)
    person = None if viewer.sees_all else viewer.person
    removed = await forget(door_of(request).store, KEPT_LEAST, person)
    return answer(200, {"status": "cleanup_completed", "removed": removed})
