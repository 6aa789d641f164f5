"""`/leaderboards/NAME/export`: everything of a board, for researchers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send
from typing_extensions import override

from bot.domain.accounts import Caller
from bot.domain.api.boards import MEDIA_TYPE
from bot.domain.errors import UserError
from bot.reports.export import pieces
from bot.services.boards import export_board, exported_evaluations, exported_sources
from bot.services.lookup import own_board
from bot.web.auth import MayCreate, still_looks
from bot.web.context import context_of
from bot.web.routes.api.openapi import NO_STORE, BoardName

router = APIRouter(prefix="/leaderboards", tags=["leaderboards"])

LONGEST_S = 1800.0
"""The longest duration of one export, including a slow reader."""
LOOK_EVERY_S = 1.0
"""Seconds between two checks of the token's rights during an export."""
_LINES: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": {MEDIA_TYPE: {"schema": {"type": "string"}}}}
}


class Turned(StreamingResponse):
    """A response that waits for its turn, and is cut off when it takes too long."""

    turns: asyncio.Semaphore

    @override
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(LONGEST_S), self.turns:
                await super().__call__(scope, receive, send)


@router.get("/{name}/export", response_class=StreamingResponse, responses=_LINES)
async def export(request: Request, name: BoardName, viewer: MayCreate) -> StreamingResponse:
    """Everything of your board: submissions, results, cases with raw samples, and sources.

    Each line is an object with a `kind`: `board`, then `rows` of a `table` and every `source`, then
    `end`, without which it has broken off. `podium export` makes files of it.
    """
    door = context_of(request)
    board = await own_board(door.store, viewer, name)
    if door.exports.locked():
        raise UserError("too-many-exports", "other boards are being exported; try again later")
    lines = _lines(request, viewer, board.name)
    answer = Turned(lines, media_type=MEDIA_TYPE, headers=NO_STORE)
    answer.turns = door.exports
    return answer


async def _lines(request: Request, viewer: Caller, name: str) -> AsyncIterator[bytes]:
    door, looked = context_of(request), _now()
    found = await export_board(door.store, viewer, name)
    async with (
        aclosing(exported_evaluations(door.store, found)) as evaluations,
        aclosing(exported_sources(door.store, found)) as sources,
        aclosing(pieces(found, evaluations, sources)) as whole,
    ):
        async for piece in whole:
            if door.closing.begun:
                return
            if _now() - looked >= LOOK_EVERY_S:
                looked = _now()
                if not await still_looks(request, viewer):
                    return
            yield piece.model_dump_json().encode() + b"\n"


def _now() -> float:
    return asyncio.get_running_loop().time()
