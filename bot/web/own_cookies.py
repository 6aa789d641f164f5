"""Lets our own cookies in and no other ones, which whoever reads them would have to unescape."""

import re

from starlette.types import ASGIApp, Receive, Scope, Send

_OURS = re.compile(rb'(?:__Host-podium|podium|podium-sign-in)="?[A-Za-z0-9_=.-]{1,2000}"?')


class OwnCookies:
    """The application without the cookies of strangers.

    FastAPI reads the header for every route. For one of backslashes Python before 3.11.10 needs a
    time that grows with the square of its length; ours have nothing to unescape.
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
