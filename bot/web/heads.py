"""Answers HEAD as GET is answered, without the body: what may be read may be asked about."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class Heads:
    """The application as it is, for whom each HEAD is a GET that goes away after the headers."""

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
            # What never ends, such as events, ends with this.
            return {"type": "http.disconnect"} if begun else await receive()

        await self._app({**scope, "method": "GET"}, receive_no_more, send_head)
