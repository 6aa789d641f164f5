"""Gives each request an id: in its response as X-Request-Id, and in its log events."""

import re
import secrets
import time

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bot.domain.api.workers import PATH

HEADER = "X-Request-Id"
SLOW_S = 1.0
"""A successful read request faster than this is not logged."""
_OFFERED = re.compile(r"[A-Za-z0-9._-]{1,64}")
"""The ids accepted from a proxy or client; others could forge or flood log lines."""
_READING = frozenset({"GET", "HEAD", "OPTIONS"})
_LONGEST_PATH = 200

_log = structlog.get_logger(__name__)


class RequestIds:
    """The outermost layer, so that a response to a bug has its id as well."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, and log it after its response."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = _id_of(scope)
        answered: list[int] = []

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[HEADER] = request
                answered.append(message["status"])
            await send(message)

        began = time.perf_counter()
        with structlog.contextvars.bound_contextvars(request=request):
            try:
                await self._app(scope, receive, send_with_id)
            finally:
                status = answered[0] if answered else None
                _tell(scope, status, time.perf_counter() - began)


def _id_of(scope: Scope) -> str:
    offered = Headers(scope=scope).get(HEADER, "")
    return offered if _OFFERED.fullmatch(offered) else secrets.token_hex(8)


def _tell(scope: Scope, status: int | None, seconds: float) -> None:
    """Log changes, failures and slow requests; never the query, which may contain a secret."""
    method, path = scope["method"], scope["path"]
    well = status is not None and status < 500
    reading = method in _READING or path.startswith(f"{PATH}/")
    if well and reading and (seconds < SLOW_S or _is_open_ended(scope)):
        return
    _log.info(
        "answered",
        action="request",
        method=method,
        path=path[:_LONGEST_PATH],
        status=status,
        seconds=round(seconds, 4),
    )


def _is_open_ended(scope: Scope) -> bool:
    """Return whether the request waits for news, so that a long duration means nothing."""
    accepted = Headers(scope=scope).get("accept", "")
    return "text/event-stream" in accepted or scope["path"].startswith(f"{PATH}/")
