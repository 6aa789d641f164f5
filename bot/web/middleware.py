"""Redirects within this door by path alone: a proxy may know it by another name and protocol."""

from urllib.parse import quote

from starlette.datastructures import URL, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_HEADER = "Location"
_KEPT = ":/%#?=@[]!$&'()*+,;"
"""What Starlette leaves as it is in the address of a redirect."""


class OwnPlaces:
    """Takes our own address out of redirects, such as those from `/queue/` to `/queue`."""

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
    """How Starlette begins a redirect: by the name that the client gave us, where it is a name."""
    here = URL(scope={**scope, "path": "", "root_path": "", "query_string": b""})
    return quote(str(here), safe=_KEPT)


def _path_of(address: str, ours: str) -> str:
    """The address without our own name; one that leads elsewhere stays as it is."""
    if not address.startswith(ours):
        return address
    path = address[len(ours) :]
    if path and not path.startswith(("/", "?")):
        return address  # a longer name that begins like ours
    # A path that began with two slashes would be the name of another host.
    return f"/{path.lstrip('/')}"
