"""Redirects within this door by path alone: a proxy may know it by another name and protocol."""

from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_HEADER = "Location"


class OwnPlaces:
    """Takes our own address out of redirects, such as those from `/queue/` to `/queue`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        host = Headers(scope=scope).get("Host", "")

        async def send_on(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                there = headers.get(_HEADER)
                if there is not None:
                    headers[_HEADER] = _path_of(there, host)
            await send(message)

        await self._app(scope, receive, send_on)


def _path_of(address: str, host: str) -> str:
    """The address without our own name; one that leads elsewhere stays as it is."""
    parts = urlsplit(address)
    if not host or parts.netloc != host:
        return address
    # A path that began with two slashes would be the name of another host.
    return parts._replace(scheme="", netloc="", path=f"/{parts.path.lstrip('/')}").geturl()
