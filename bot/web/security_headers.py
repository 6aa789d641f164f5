"""Headers of every response: browsers must not sniff content types or leave HTTPS."""

from http import HTTPStatus

import h11
from starlette.datastructures import MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from typing_extensions import override
from uvicorn.protocols.http.h11_impl import H11Protocol

NOSNIFF = ("X-Content-Type-Options", "nosniff")
_HSTS = ("Strict-Transport-Security", "max-age=31536000")
"""HTTPS only, for a year; not for subdomains, which may belong to others."""
_BUSY = PlainTextResponse(
    "Podium answers as many requests as it can just now; try again in some seconds\n",
    HTTPStatus.SERVICE_UNAVAILABLE,
    {"Retry-After": "5", "Connection": "close"},
)


class Sealing:
    """The application with these headers; the HTTPS one only if its public address has HTTPS.

    Requests beyond `most` concurrent ones are asked to retry: uvicorn's own response
    (`limit_concurrency`) would lack the headers.
    """

    def __init__(self, app: ASGIApp, public_url: str | None, most: int) -> None:
        self._app, self._most, self._answering = app, most, 0
        https = (public_url or "").startswith("https:")
        self._headers = dict((NOSNIFF, _HSTS) if https else (NOSNIFF,))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""

        async def sealed(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(self._headers)
            await send(message)

        if self._answering >= self._most:
            await _BUSY(scope, receive, sealed)
            return
        self._answering += 1
        try:
            await self._app(scope, receive, sealed)
        finally:
            self._answering -= 1


class SealedProtocol(H11Protocol):
    """uvicorn's HTTP protocol, with the headers also in its response to invalid requests."""

    @override
    def send_400_response(self, msg: str) -> None:
        status = HTTPStatus.BAD_REQUEST
        told = {"content-type": "text/plain; charset=utf-8", "connection": "close"}
        headers = [*told.items(), NOSNIFF]
        answer = h11.Response(status_code=status, headers=headers, reason=status.phrase.encode())
        for event in (answer, h11.Data(data=msg.encode()), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
