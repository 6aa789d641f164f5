"""The routes under `/eval`, whose errors have the evaluation server's form and not this door's."""

from starlette.exceptions import HTTPException
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.routing import Route, Router
from starlette.types import Receive, Scope, Send

from bot.domain.errors import StoreError, UserError
from bot.frontends.web.compat.evaluation_server import http as refusals
from bot.frontends.web.compat.evaluation_server import looking
from bot.frontends.web.compat.evaluation_server import routes as judging

PREFIX = "/eval"
AT_ROOT = ("/evaluate", "/compare", "/health", "/job/{job_id}", "/stats", "/admin/cleanup-jobs")
"""The routes that are at the door's root as well, where the evaluation server had them."""


class _Tools:
    """The tools, imported when somebody calls one: their library takes most of a second to load."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        from bot.frontends.web.compat.evaluation_server import mcp_tools  # noqa: PLC0415

        await mcp_tools.answer_call(scope, receive, send)


_ROUTES = [
    Route("/", judging.compare, methods=["POST"]),
    Route("/evaluate", judging.evaluate, methods=["POST"]),
    Route("/compare", judging.compare, methods=["POST"]),
    Route("/health", looking.health, methods=["GET"]),
    Route("/job/{job_id}", looking.job, methods=["GET"]),
    Route("/stats", looking.stats, methods=["GET"]),
    Route("/admin/cleanup-jobs", looking.cleanup, methods=["POST"]),
    Route("/mcp", _Tools(), methods=["POST"]),
    Route("/mcp/", _Tools(), methods=["POST"]),
]


class Surface:
    """An application within the door's own, which it shares the door with."""

    def __init__(self, prefix: str = PREFIX) -> None:
        self._prefix = prefix
        handlers = {
            refusals.FormError: refusals.wrong_form,
            refusals.NoJsonError: refusals.no_json,
            HTTPException: refusals.no_route,
            UserError: refusals.refused,
            StoreError: refusals.refused,
            Exception: refusals.refused,
        }
        self._app = ExceptionMiddleware(Router(_ROUTES), handlers=handlers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        root = scope.get("root_path", "") + self._prefix
        path = f"{root}/" if scope["path"] == root else scope["path"]
        await self._app({**scope, "root_path": root, "path": path}, receive, send)
