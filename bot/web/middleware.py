"""Small layers around every request: cookies, redirects and HEAD."""

import re
from urllib.parse import quote

from starlette.datastructures import URL, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_HEADER = "Location"
_KEPT = ":/%#?=@[]!$&'()*+,;"
"""Characters that Starlette does not escape in a redirect's address."""


class RelativeRedirects:
    """Removes our own host from redirects, such as from `/queue/` to `/queue`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        ours = _address(scope)

        async def send_on(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                there = headers.get(_HEADER)
                if there is not None:
                    headers[_HEADER] = _path_of(there, ours)
            await send(message)

        await self._app(scope, receive, send_on)


def _address(scope: Scope) -> str:
    """Return how Starlette begins a redirect: with the host that the client gave, if valid."""
    here = URL(scope={**scope, "path": "", "root_path": "", "query_string": b""})
    return quote(str(here), safe=_KEPT)


def _path_of(address: str, ours: str) -> str:
    """Return the address without our own host; an external one stays as it is."""
    if not address.startswith(ours):
        return address
    path = address[len(ours) :]
    if path and not path.startswith(("/", "?")):
        return address  # a longer host that starts like ours
    # A path that starts with two slashes would be another host.
    return f"/{path.lstrip('/')}"


class HeadRequests:
    """The application, for which each HEAD is a GET that disconnects after the headers."""

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


_OURS = re.compile(rb'(?:__Host-podium|podium|podium-sign-in)="?[A-Za-z0-9_=.-]{1,2000}"?')


class OwnCookies:
    """The application with only our own cookies.

    FastAPI parses the header for every route. Before Python 3.11.10 that takes quadratic time for
    backslashes; our cookies have nothing to unescape.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        headers = [each for each in scope.get("headers", ()) if each[0] != b"cookie"]
        if len(headers) < len(scope.get("headers", ())):
            ours = _ours(b";".join(v for name, v in scope["headers"] if name == b"cookie"))
            scope = {**scope, "headers": [*headers, (b"cookie", ours)] if ours else headers}
        await self._app(scope, receive, send)


def _ours(header: bytes) -> bytes:
    found = (each.strip() for each in header.split(b";"))
    return b"; ".join(each for each in found if _OURS.fullmatch(each))
