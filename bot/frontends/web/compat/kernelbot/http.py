"""How the routes answer: JSON that nobody keeps, errors as `{"detail": ...}`, and with patience."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from typing_extensions import override

from bot.domain.errors import StoreError, UserError
from bot.frontends.web.door import door_of
from bot.frontends.web.failures import answer_to
from runners.contract.runner import RunnerError

PATIENCE_S = 20.0
"""How long a reading waits for a database that is away; popcorn-cli gives up a poll after 30 s."""
RETRY_S = 0.5

_FAMILIES = (UserError, StoreError, RunnerError, RequestValidationError, HTTPException)
_OF_BODY = {"content-length", "content-type"}
_Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class Route(APIRoute):
    """A route whose errors have KernelBot's shape; popcorn-cli prints their `detail`.

    Whatever only reads is read again while the database is away: popcorn-cli gives up a whole
    submission at the first poll that fails.
    """

    @override
    def get_route_handler(self) -> _Handler:
        handle = super().get_route_handler()

        async def answered(request: Request) -> Response:
            try:
                if request.method == "GET":
                    return await _patiently(request, handle)
                return await handle(request)
            except _FAMILIES as error:
                return _in_their_shape(await answer_to(request, error))

        return answered


async def _patiently(
    request: Request, handle: Callable[[Request], Awaitable[Response]]
) -> Response:
    closing = door_of(request).closing
    try:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                try:
                    return await handle(request)
                except StoreError:
                    if closing.begun:
                        raise
                    await asyncio.sleep(RETRY_S)
    except TimeoutError as error:
        raise StoreError(f"no answer from the store within {PATIENCE_S:.0f} s") from error


def _in_their_shape(answer: Response) -> Response:
    problem = json.loads(bytes(answer.body))
    kept = {name: value for name, value in answer.headers.items() if name not in _OF_BODY}
    return JSONResponse({"detail": problem["detail"]}, answer.status_code, kept)


def answered(value: object, status: int = 200) -> Response:
    """An answer that nobody on the way may keep."""
    return JSONResponse(value, status, {"Cache-Control": "no-store"})


def not_offered(what: str) -> Response:
    """The answer where Podium does a thing in another way, which `what` tells."""
    return answered({"detail": what}, 501)
