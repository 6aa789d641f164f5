"""`/eval`: all routes, their error handlers, and where they are mounted."""

import asyncio
import time

from fastapi import APIRouter
from starlette.exceptions import HTTPException
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import Receive, Scope, Send

from bot.domain.errors import StoreError, UserError
from bot.domain.ids import SubmissionId
from bot.web.compat.evaluation_server import http, metrics, responses
from bot.web.compat.evaluation_server.jobs import KEPT_LEAST, delete_ended, find_request, upkeep
from bot.web.context import context_of

__all__ = ["router", "upkeep"]


async def evaluate(request: Request) -> Response:
    """Whether a kernel runs, and how long it takes."""
    begun = asyncio.get_running_loop().time()
    viewer = await http.submitter_of(request)
    body = await http.read_request(request, http.evaluation)
    return _response(await responses.exchange(request, viewer, body, begun))


async def compare(request: Request) -> Response:
    """Whether a kernel returns what its reference returns, and how long both take."""
    begun = asyncio.get_running_loop().time()
    viewer = await http.submitter_of(request)
    body = await http.read_request(request, http.comparison)
    return _response(await responses.exchange(request, viewer, body, begun))


def _response(found: responses.EvaluationResponse) -> Response:
    headers = {} if found.gpu_type is None else {"X-GPU-Type": found.gpu_type}
    return http.answer(found.status, found.body, headers)


_LOADED = time.monotonic()
_MOST_DIGITS = 18


async def health(request: Request) -> Response:
    """Whether requests can be judged now; needs no token."""
    store = context_of(request).store
    try:
        counts, capacity = await metrics.tallies(store), await metrics.slots(store)
    except StoreError:
        return http.answer(500, {"status": "unhealthy", "error": "the database is unavailable"})
    free = capacity.free
    body: dict[str, object] = {
        "status": "healthy",
        "job_stats": metrics.job_stats(counts),
        "gpu_manager": {
            "available_gpus": sum(free.values()),
            "slots": capacity.offered,
            "free": free,
        },
        "gpu_available": capacity.gpus > 0,
        "gpu_count": capacity.gpus,
    }
    if not capacity.offered:
        error = "no runner is connected: start one on a machine with a GPU"
        return http.answer(500, {**body, "status": "unhealthy", "error": error})
    return http.answer(200, body)


async def job(request: Request) -> Response:
    """The caller's job, with its result once there is one."""
    viewer = await http.reader_of(request)
    number = str(request.path_params["job_id"])
    if not number.isascii() or not number.isdigit() or len(number) > _MOST_DIGITS:
        raise UserError("unknown-job", f"Job {number[:_MOST_DIGITS]} not found")
    found = await find_request(context_of(request).store, viewer, SubmissionId(int(number)))
    return http.answer(
        200, await asyncio.to_thread(responses.job, found, responses.address_of(request))
    )


async def stats(request: Request) -> Response:
    """Counts over the stored requests."""
    await http.reader_of(request)
    context = context_of(request)
    now, uptime_s = context.clock.now(), time.monotonic() - _LOADED
    counts, runs = await metrics.tallies(context.store), await metrics.newest(context.store)
    return http.answer(
        200,
        {
            "job_stats": metrics.job_stats(counts),
            "compilation_metrics": metrics.compilation(runs),
            "profiling_metrics": metrics.profiling(runs),
            "gpu_utilization": metrics.utilization(runs),
            "throughput": metrics.throughput(counts, runs, now, uptime_s),
            "timestamp": now.timestamp(),
        },
    )


async def cleanup(request: Request) -> Response:
    """Remove the caller's jobs that ended a while ago; an admin's token removes everyone's."""
    viewer = await http.submitter_of(request)
    person = None if viewer.sees_all else viewer.person
    removed = await delete_ended(context_of(request).store, KEPT_LEAST, person)
    return http.answer(200, {"status": "cleanup_completed", "removed": removed})


PREFIX = "/eval"
AT_ROOT = ("/evaluate", "/compare", "/health", "/job/{job_id}", "/stats", "/admin/cleanup-jobs")
"""The routes that are also at the web server's root, as in the evaluation server."""


class _Tools:
    """The tools, imported at their first call: their library takes most of a second to load."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        from bot.web.compat.evaluation_server import mcp_tools  # noqa: PLC0415

        await mcp_tools.answer_call(scope, receive, send)


_ROUTES = [
    Route("/", compare, methods=["POST"]),
    Route("/evaluate", evaluate, methods=["POST"]),
    Route("/compare", compare, methods=["POST"]),
    Route("/health", health, methods=["GET"]),
    Route("/job/{job_id}", job, methods=["GET"]),
    Route("/stats", stats, methods=["GET"]),
    Route("/admin/cleanup-jobs", cleanup, methods=["POST"]),
    Route("/mcp", _Tools(), methods=["POST"]),
]


_ROUTER = Router(_ROUTES, redirect_slashes=False)
"""Its own redirects would name the host that the client sent."""


class SliceApp:
    """The API as an application of its own, inside the web server's application."""

    def __init__(self, prefix: str = PREFIX) -> None:
        self._prefix = prefix
        handlers = {
            http.FormError: http.form_error,
            http.NoJsonError: http.json_error,
            HTTPException: http.no_route,
            UserError: http.other_error,
            StoreError: http.other_error,
            Exception: http.other_error,
        }
        self._app = ExceptionMiddleware(_ROUTER, handlers=handlers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        root = scope.get("root_path", "") + self._prefix
        path = scope["path"].rstrip("/")
        path = f"{root}/" if path == root else path
        await self._app({**scope, "root_path": root, "path": path}, receive, send)


_PATHS = {PREFIX: PREFIX, f"{PREFIX}/{{path:path}}": PREFIX} | dict.fromkeys(AT_ROOT, "")

router = APIRouter(
    routes=[
        Route(path, SliceApp(prefix), include_in_schema=False) for path, prefix in _PATHS.items()
    ]
)
