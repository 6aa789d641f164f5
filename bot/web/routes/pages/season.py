"""`/boards/NAME/season`: the runs of a season as tables, and as the data of its plot."""

import gzip
import json
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from bot.domain.board import NOBODY, Board, Viewer
from bot.domain.leaderboard import Season
from bot.reports.charts import describe_chart, season_chart, season_data
from bot.services.history import with_own_runs
from bot.services.lookup import find_board
from bot.services.standings import season
from bot.web import auth, rendering
from bot.web.context import WebContext, context_of

router = APIRouter(prefix="/boards/{name}")
GpuQuery = Annotated[str | None, Query(max_length=64)]
FRESH_S = 3.0
"""How long in seconds a season is reused, because it is read from many runs."""
_MOST_ROWS = 200
"""The most rows of each table; the newest are shown."""


@dataclass(frozen=True, slots=True)
class _Plot:
    """A season, whether its board shows sources now, and the data for the script."""

    season: Season
    shows_sources: bool
    data: bytes
    zipped: bytes


@router.get("/season")
async def season_page(
    request: Request, name: str, viewer: auth.AnyViewer, gpu: GpuQuery = None
) -> Response:
    """Show the season's records and runs as tables."""
    context = context_of(request)
    board = await find_board(context.store, viewer, name)
    plot = await _season(context, viewer, board, gpu)
    found = plot.season
    chart = season_chart(found)
    values = {
        "title": f"The season of {board.name} on {found.leaderboard.gpu}",
        "board": board,
        "gpu": found.leaderboard.gpu,
        "words": "" if chart is None else describe_chart(chart),
        "records": found.compared_records[: -_MOST_ROWS - 1 : -1],
        "runs": found.compared_runs[: -_MOST_ROWS - 1 : -1],
        "total": found.total,
        "sampled": not found.is_whole,
        "shows_sources": plot.shows_sources or viewer.sees_all,
        "own": viewer.person,
    }
    return await rendering.page(request, viewer, "season.html", values)


@router.get("/season.json")
async def season_plot(
    request: Request, name: str, viewer: auth.AnyViewer, gpu: GpuQuery = None
) -> Response:
    """Return the data of the season's plot; it has no series while there are no ranks."""
    context = context_of(request)
    board = await find_board(context.store, viewer, name)
    plot = await _season(context, viewer, board, gpu)
    vary = "Accept-Encoding, Authorization, Cookie"
    headers = {"Cache-Control": "private, max-age=5", "Vary": vary}
    body = plot.data
    if rendering.takes_gzip(request):
        body, headers["Content-Encoding"] = plot.zipped, "gzip"
    return Response(body, media_type="application/json", headers=headers)


async def _season(context: WebContext, viewer: Viewer, board: Board, gpu: str | None) -> _Plot:
    """Return the season, which is read once for all viewers who may see the board.

    A sample of a long season has every run of the viewer in addition.
    """
    is_open = board.is_open(context.clock.now())
    shown = board.access.shows_sources(is_open=is_open, consent=board.access.source)

    async def make() -> _Plot:
        found = await season(context.store, context.clock, viewer, board.name, gpu=gpu)
        return _plot(found, shows_sources=shown)

    everyones = await context.cache.get(("season", board, gpu), FRESH_S, make)
    if everyones.season.is_whole or viewer.person == NOBODY:
        return everyones

    async def make_own() -> _Plot:
        found = await with_own_runs(context.store, everyones.season, viewer.person)
        return _plot(found, shows_sources=shown)

    key = ("season", board, gpu, everyones.season.until, viewer.person)
    return await context.cache.get(key, FRESH_S, make_own)


def _plot(found: Season, *, shows_sources: bool) -> _Plot:
    values = season_data(found, shows_sources=shows_sources)
    data = json.dumps(values, separators=(",", ":")).encode()
    return _Plot(found, shows_sources, data, gzip.compress(data, mtime=0))
