"""`/leaderboards/NAME/standings`: as JSON or CSV; unchanged ones are not sent again."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, Field

from bot.domain.api.boards import LeaderboardsAnswer
from bot.domain.leaderboard import BoardStandings
from bot.reports.standings import standings_csv
from bot.services.standings import board_standings as service
from bot.web.auth import AnyViewer
from bot.web.context import WebContext, context_of
from bot.web.routes.api.board_bodies import leaderboards_answer
from bot.web.routes.api.openapi import BoardName, GpuQuery, VersionQuery

router = APIRouter(prefix="/leaderboards/{name}", tags=["leaderboards"])

_CSV = "text/csv"
_LAG_S = 2.0
"""How long an old response may be used while the next one is written."""
_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": {_CSV: {"schema": {"type": "string"}}}},
    304: {"description": "Nothing has changed since the answer with the ETag of `If-None-Match`"},
}
_KNOWN_TAG: Final[dict[str, Any]] = {
    "name": "If-None-Match",
    "in": "header",
    "description": "The ETag of the answer that you have",
    "schema": {"type": "string"},
}


class Wish(BaseModel):
    """Which leaderboards, and in which format."""

    gpu: GpuQuery = None
    version: VersionQuery = None
    format: Annotated[
        Literal["json", "csv"] | None, Field(description="Else what `Accept` prefers")
    ] = None


@router.get(
    "/standings",
    response_model=LeaderboardsAnswer,
    responses=_RESPONSES,
    openapi_extra={"parameters": [_KNOWN_TAG]},
)
async def standings(
    request: Request, name: BoardName, viewer: AnyViewer, wish: Annotated[Wish, Query()]
) -> Response:
    """The leaderboards of a board: one for each GPU type, the fastest first."""
    door, sent = context_of(request), request.headers
    found = await service(door.store, viewer, name, wish.gpu, version=wish.version)
    as_csv = (wish.format or _preferred(sent.get("accept", ""))) == "csv"
    answer = await _answer(door, found, as_csv=as_csv)
    tags = {each.strip().removeprefix("W/") for each in sent.get("if-none-match", "").split(",")}
    if tags & {answer.tag, "*"}:
        return Response(status_code=304, headers=_headers(answer.tag))
    return Response(answer.body, headers=_headers(answer.tag) | answer.about)


@dataclass(frozen=True, slots=True)
class _Answer:
    """A standings response for any number of readers."""

    body: bytes
    tag: str
    about: dict[str, str]
    moves: tuple[int, ...]
    """The change counters of its leaderboards."""


async def _answer(door: WebContext, found: Sequence[BoardStandings], *, as_csv: bool) -> _Answer:
    """Return a response written once for all who may see the same, until it changes."""
    board, now = found[0].board, door.clock.now()

    moves = tuple(each.moves for each in found)

    async def make() -> _Answer:
        # Not in a thread: next to a busy thread, the loop waits 5 ms for each turn.
        body, about = await _written(found, now, as_csv=as_csv)
        return _Answer(body, f'"{hashlib.sha256(body).hexdigest()[:32]}"', about, moves)

    asked = tuple((each.gpu, each.version, each.reference_failure, each.quotes) for each in found)
    key = (as_csv, board, board.is_open(now), asked)
    answer: _Answer = await door.written.get(
        key, make, current=lambda it, _: it.moves == moves, lag_s=_LAG_S
    )
    return answer


async def _written(
    found: Sequence[BoardStandings], now: datetime, *, as_csv: bool
) -> tuple[bytes, dict[str, str]]:
    if as_csv:
        text = standings_csv(found)
        saved_as = f'attachment; filename="{found[0].board.name}.csv"'
        about = {"Content-Type": f"{_CSV}; charset=utf-8", "Content-Disposition": saved_as}
    else:
        text = (await leaderboards_answer(found, now)).model_dump_json()
        about = {"Content-Type": "application/json"}
    return text.encode(), about


def _headers(tag: str) -> dict[str, str]:
    return {
        "ETag": tag,
        "Cache-Control": "private, no-cache",
        "Vary": "Accept, Authorization, Cookie",
    }


def _preferred(accept: str) -> str:
    """Return CSV if the client names it and not JSON."""
    return "csv" if _CSV in accept and "json" not in accept else "json"
