"""The ASGI layers around the routes, and the headers that every response has.

The layers drop other applications' cookies, answer HEAD, and give each request an id, which is in
its response and in its log events. The headers tell browsers not to sniff content types and not to
leave HTTPS.
"""

import re
import secrets
import time
from http import HTTPStatus

import h11
import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from typing_extensions import override
from uvicorn.protocols.http.h11_impl import H11Protocol

from bot.domain.api.workers import PATH


class HeadRequests:
    """The application, which gets each HEAD as a GET whose client disconnects after the headers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        begun = False

        async def send_head(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                await send(message)
                await send({"type": "http.response.body", "body": b"", "more_body": False})

        async def receive_no_more() -> Message:
            # Endless responses, such as events, end here.
            return {"type": "http.disconnect"} if begun else await receive()

        await self._app({**scope, "method": "GET"}, receive_no_more, send_head)


_OWN_COOKIE = re.compile(rb'(?:__Host-podium|podium|podium-sign-in)="?[A-Za-z0-9_=.-]{1,2000}"?')


class OwnCookies:
    """The application, which gets only its own cookies.

    FastAPI parses the cookie header for every route. Before Python 3.11.10 that takes quadratic
    time for backslashes, which the own cookies never have.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        headers = [each for each in scope.get("headers", ()) if each[0] != b"cookie"]
        if len(headers) < len(scope.get("headers", ())):
            own = _own_cookies(b";".join(v for name, v in scope["headers"] if name == b"cookie"))
            scope = {**scope, "headers": [*headers, (b"cookie", own)] if own else headers}
        await self._app(scope, receive, send)


def _own_cookies(header: bytes) -> bytes:
    cookies = (each.strip() for each in header.split(b";"))
    return b"; ".join(each for each in cookies if _OWN_COOKIE.fullmatch(each))


REQUEST_ID = "X-Request-Id"
SLOW_S = 1.0
"""A successful read request faster than this is not logged."""
_VALID_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
"""The ids accepted from a proxy or client; others could forge or flood log lines."""
_READ_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_LONGEST_PATH = 200

_log = structlog.get_logger(__name__)


class RequestIds:
    """Gives each request an id; the outermost layer, so that unexpected errors have one as well."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, and log it after its response."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _id_of(scope)
        statuses: list[int] = []

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[REQUEST_ID] = request_id
                statuses.append(message["status"])
            await send(message)

        started = time.perf_counter()
        with structlog.contextvars.bound_contextvars(request=request_id):
            try:
                await self._app(scope, receive, send_with_id)
            finally:
                status = statuses[0] if statuses else None
                _log_request(scope, status, time.perf_counter() - started)


def _id_of(scope: Scope) -> str:
    offered = Headers(scope=scope).get(REQUEST_ID, "")
    return offered if _VALID_ID.fullmatch(offered) else secrets.token_hex(8)


def _log_request(scope: Scope, status: int | None, seconds: float) -> None:
    """Log changes, failures and slow requests; never the query, which may contain a secret."""
    method, path = scope["method"], scope["path"]
    succeeded = status is not None and status < 500
    reads = method in _READ_METHODS or path.startswith(f"{PATH}/")
    if succeeded and reads and (seconds < SLOW_S or _is_open_ended(scope)):
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
    """Return whether the request waits for events, so its duration means nothing."""
    accepted = Headers(scope=scope).get("accept", "")
    return "text/event-stream" in accepted or scope["path"].startswith(f"{PATH}/")


NOSNIFF = ("X-Content-Type-Options", "nosniff")
_HSTS = ("Strict-Transport-Security", "max-age=31536000")
"""HTTPS only, for a year; not for subdomains, which may belong to others."""
_BUSY = PlainTextResponse(
    "Podium is already answering as many requests as it can; try again in a few seconds\n",
    HTTPStatus.SERVICE_UNAVAILABLE,
    {"Retry-After": "5", "Connection": "close"},
)


class SecurityHeaders:
    """The application, whose responses have the security headers; HSTS only if its URL is HTTPS.

    Requests beyond `most` concurrent ones are asked to retry: uvicorn's own response
    (`limit_concurrency`) would lack the headers.
    """

    def __init__(self, app: ASGIApp, public_url: str | None, most: int) -> None:
        self._app, self._most, self._answering = app, most, 0
        https = (public_url or "").startswith("https:")
        self._headers = dict((NOSNIFF, _HSTS) if https else (NOSNIFF,))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(self._headers)
            await send(message)

        if self._answering >= self._most:
            await _BUSY(scope, receive, send_with_headers)
            return
        self._answering += 1
        try:
            await self._app(scope, receive, send_with_headers)
        finally:
            self._answering -= 1


class SecurityHeadersProtocol(H11Protocol):
    """uvicorn's HTTP protocol, with the headers also in its response to invalid requests."""

    @override
    def send_400_response(self, msg: str) -> None:
        status = HTTPStatus.BAD_REQUEST
        fields = {"content-type": "text/plain; charset=utf-8", "connection": "close"}
        headers = [*fields.items(), NOSNIFF]
        response = h11.Response(status_code=status, headers=headers, reason=status.phrase.encode())
        for event in (response, h11.Data(data=msg.encode()), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
