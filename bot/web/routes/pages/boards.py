"""The list of boards, the pages of each (standings, season, task, scaling), and competitions."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from bot.domain.board import Board, Viewer
from bot.domain.competition import LONGEST_NAME
from bot.domain.errors import UserError
from bot.domain.leaderboard import BoardOverview, BoardStandings
from bot.domain.records import FailedRun
from bot.domain.scoring import Score, Standing
from bot.domain.tasks.grading import not_run
from bot.domain.tasks.template import template_of
from bot.reports import blocks, tasks
from bot.reports.charts import as_table, describe_chart, scaling_report, season_chart
from bot.reports.competition import dates_line, overall_blocks, points_line
from bot.reports.confirmations import final_table, pending_table
from bot.reports.standings import absent_table, standings_notes, standings_table
from bot.services import lookup
from bot.services.boards import list_boards
from bot.services.competitions import competition_standings, visible_competitions
from bot.services.standings import board_standings, leaderboard, scaling, season
from bot.web import auth, figures, rendering
from bot.web.context import WebContext, context_of, is_here

router = APIRouter()
_MOST_LISTED = 10
"""The most competitions on the home page."""
_MOST_NAMED = 2
"""If more people share the first rank, only one of them is named."""


@router.get("/")
async def boards(request: Request, viewer: auth.AnyViewer) -> Response:
    """Show the open boards, those that close soonest first, and the closed ones."""
    context = context_of(request)
    now = context.clock.now()
    overviews = sorted(await list_boards(context.store, viewer), key=_closing)
    best = [score for each in overviews for score in each.best]
    values = {
        "title": "Leaderboards",
        "open": [each for each in overviews if each.board.is_open(now)],
        "ended": [each for each in reversed(overviews) if not each.board.is_open(now)],
        "firsts": {(each.task_version, each.gpu): await _firsts(context, each) for each in best},
        **await _competitions(context, viewer, after=None, most=_MOST_LISTED),
        "now": now,
        "is_here": is_here(request),
        "may_create": viewer.is_creator,
    }
    return await rendering.page(request, viewer, "boards.html", values)


async def _competitions(
    context: WebContext, viewer: Viewer, *, after: str | None, most: int
) -> dict[str, Any]:
    """Return the names and dates of competitions, and the last name if there are more."""
    found = await visible_competitions(
        context.store, context.clock, viewer, after=after, limit=most + 1
    )
    now = context.clock.now()
    shown = [(each.name, dates_line(each, now)) for each in found[:most]]
    return {"competitions": shown, "more": shown[-1][0] if len(found) > most else ""}


@router.get("/competitions")
async def competitions(
    request: Request,
    viewer: auth.AnyViewer,
    after: Annotated[str, Query(max_length=LONGEST_NAME)] = "",
) -> Response:
    """Show a page of the competitions by name, with their dates."""
    values = await _competitions(context_of(request), viewer, after=after, most=_ROWS)
    values |= {"title": "Competitions", "may_create": viewer.is_creator}
    return await rendering.page(request, viewer, "competitions.html", values)


@router.get("/competitions/{name}")
async def competition(request: Request, name: str, viewer: auth.AnyViewer) -> Response:
    """Show the boards and the overall ranking; before the opening, only the date."""
    context = context_of(request)

    async def make() -> rendering.RenderedPage:
        found = await competition_standings(context.store, context.clock, viewer, name)
        now = context.clock.now()
        values = {
            "title": found.competition.name,
            "competition": found.competition,
            "dates": dates_line(found.competition, now),
            "points": points_line(found.competition.points),
            "overall": list(overall_blocks(found)),
            "now": now,
            "may_edit": viewer.is_creator and found.competition.belongs_to(viewer),
        }
        return await rendering.render_page(request, viewer, "competition.html", values)

    page = await context.cache.get(("competition", viewer, name), FRESH_S, make)
    return rendering.page_response(request, page)


def first_names(entries: Sequence[Standing]) -> str:
    """Return who shares the first rank: one or two names, or one name and how many others."""
    names = [each.score.person_name for each in entries if each.rank == 1]
    return f"{names[0]} and {len(names) - 1} more" if len(names) > _MOST_NAMED else ", ".join(names)


async def _firsts(context: WebContext, best: Score) -> str:
    """Return the names of those who share the first rank with this score."""

    async def make() -> str:
        found = await leaderboard(context.store, best.task_version, best.gpu)
        return first_names(found.entries) or best.person_name

    return await context.cache.get(("firsts", best.task_version, best.gpu), FRESH_S, make)


def _closing(overview: BoardOverview) -> tuple[float, str]:
    """Return the sort key of a board's deadline; boards without one come last."""
    deadline = overview.board.deadline
    return math.inf if deadline is None else deadline.timestamp(), overview.board.name


_ROWS = 100
GpuQuery = Annotated[str | None, Query(max_length=64)]
_TABLE_ROWS = 25
"""The most rows of each series in the season's table, shown when no script draws the plot."""
FRESH_S = 1.0
"""How long a rendered page is reused for the same request."""
SEASON_FRESH_S = 15.0
"""How long the season's plot is reused, which is drawn from many runs."""


class BoardPageQuery(BaseModel):
    """The query parameters of a board's page."""

    model_config = ConfigDict(extra="ignore")

    gpu: Annotated[str | None, Field(max_length=64)] = None
    version: Annotated[int | None, Field(ge=1, lt=1 << 31)] = None
    person: Annotated[str, Field(max_length=100)] = ""
    page: Annotated[int, Field(ge=1, le=100_000)] = 1


@dataclass(frozen=True, slots=True)
class StandingRow:
    """A standing with its cells, and its interval on the common scale."""

    standing: Standing
    cells: tuple[str, ...]
    span: figures.IntervalMark


@dataclass(frozen=True, slots=True)
class Absence:
    """A person who is not ranked, and why."""

    refusal: FailedRun
    cells: tuple[str, ...]


@router.get("/boards/{name}")
async def board(
    request: Request, name: str, viewer: auth.AnyViewer, query: Annotated[BoardPageQuery, Query()]
) -> Response:
    """Show the standings; requests of the same viewer within a second share one rendered page."""
    context = context_of(request)

    async def make() -> rendering.RenderedPage:
        values = await _values(context, viewer, name, query)
        return await rendering.render_page(request, viewer, "board.html", values)

    key = ("board", viewer, name, *query.model_dump().values())
    return rendering.page_response(request, await context.cache.get(key, FRESH_S, make))


async def _values(
    context: WebContext, viewer: Viewer, name: str, query: BoardPageQuery
) -> dict[str, Any]:
    board = await lookup.find_board(context.store, viewer, name)
    gpu = query.gpu or board.gpus[0]
    (leaderboard,) = await board_standings(context.store, viewer, name, gpu, version=query.version)
    return {
        "title": f"{board.name} on {leaderboard.gpu}",
        "board": board,
        "back": f"/boards/{quote(board.name)}?{rendering.query({'gpu': leaderboard.gpu})}",
        "leaderboard": leaderboard,
        "versions": await context.store.boards.versions(board.id),
        "query": query,
        "now": context.clock.now(),
        "firsts": first_names(leaderboard.entries),
        **_standings_values(leaderboard, query),
    }


@router.get("/boards/{name}/season")
async def season_page(
    request: Request, name: str, viewer: auth.AnyViewer, gpu: GpuQuery = None
) -> Response:
    """Show the season as a table, for readers without the plot."""
    context = context_of(request)
    board = await lookup.find_board(context.store, viewer, name)
    plot = await _season(context, viewer, board, gpu)
    chart = plot.chart
    values = {
        "title": f"The season of {board.name} on {plot.gpu}",
        "board": board,
        "gpu": plot.gpu,
        "words": "" if chart is None else describe_chart(chart),
        "season": None if chart is None else as_table(chart, _TABLE_ROWS),
    }
    return await rendering.page(request, viewer, "season.html", values)


@router.get("/boards/{name}/season.json")
async def season_data(
    request: Request, name: str, viewer: auth.AnyViewer, gpu: GpuQuery = None
) -> Response:
    """Return the data of the season's plot; it has no series while there are no ranks."""
    context = context_of(request)
    board = await lookup.find_board(context.store, viewer, name)
    body = (await _season(context, viewer, board, gpu)).data
    headers = {"Cache-Control": "private, max-age=5", "Vary": "Authorization, Cookie"}
    return Response(body, media_type="application/json", headers=headers)


@dataclass(frozen=True, slots=True)
class _Plot:
    """A season's chart on one GPU type, None when it is empty, and its data for the script."""

    gpu: str
    chart: blocks.Chart | None
    data: bytes


async def _season(context: WebContext, viewer: Viewer, board: Board, gpu: str | None) -> _Plot:
    """Return the plot, which is computed once for all who may see the board."""

    async def make() -> _Plot:
        history = await season(context.store, context.clock, viewer, board.name, gpu=gpu)
        chart = season_chart(history)
        data = {"series": []} if chart is None else figures.as_data(chart)
        return _Plot(
            history.leaderboard.gpu, chart, json.dumps(data, separators=(",", ":")).encode()
        )

    return await context.cache.get(("season", board, gpu), SEASON_FRESH_S, make)


def _standings_values(leaderboard: BoardStandings, query: BoardPageQuery) -> dict[str, Any]:
    """Return the report's texts, and its tables after filtering."""
    named = [
        each for each in leaderboard.entries if _is_named(each.score.person_name, query.person)
    ]
    absent = [each for each in leaderboard.refused if _is_named(each.person_name, query.person)]
    pages = max(1, -(-len(named) // _ROWS))
    number = min(query.page, pages)
    rows = named[(number - 1) * _ROWS : number * _ROWS]
    table, scale = standings_table(leaderboard, rows), figures.spans(rows, leaderboard.entries)
    missing = absent_table(absent[:_ROWS])
    places = () if scale is None else scale.rows
    return {
        "notes": list(standings_notes(leaderboard)),
        "columns": table.columns,
        "lines": list(map(StandingRow, rows, table.rows, places)),
        "scale": scale,
        "found": len(named),
        "pages": pages,
        "page": number,
        "waiting": pending_table(leaderboard.pending) if leaderboard.pending else None,
        "final": final_table(leaderboard.final),
        "absent_columns": missing.columns,
        "absent": list(map(Absence, absent, missing.rows)),
        "more_absent": max(0, len(absent) - _ROWS),
    }


def _is_named(name: str, query: str) -> bool:
    return query.strip().casefold() in name.casefold()


_FILE_HEADERS = {"Cache-Control": "private, no-store", "Content-Disposition": "attachment"}


@router.get("/boards/{name}/task")
async def task(request: Request, name: str, viewer: auth.AnyViewer) -> Response:
    """Show the description, the templates and every file."""
    context = context_of(request)
    board, definition = await lookup.task_of(context.store, viewer, name)
    report = tasks.task_report(board, definition)
    values = {
        "title": report.title,
        "board": board,
        "task": definition,
        "texts": [each for each in report.blocks if isinstance(each, blocks.Text)],
        "files": [each for each in report.blocks if isinstance(each, blocks.Attachment)],
        "unused": not_run(definition),
        "now": context.clock.now(),
    }
    return await rendering.page(request, viewer, "task.html", values)


@router.get("/boards/{name}/task/{file}")
async def task_file(request: Request, name: str, file: str, viewer: auth.AnyViewer) -> Response:
    """Show one of the task's files."""
    board, definition = await lookup.task_of(context_of(request).store, viewer, name)
    for each in tasks.task_report(board, definition).blocks:
        if isinstance(each, blocks.Attachment) and each.name == file:
            return Response(each.data, media_type="text/plain", headers=_FILE_HEADERS)
    raise UserError("unknown-file", "the task has no file of this name; its page lists them")


@router.get("/boards/{name}/template")
async def template(
    request: Request,
    name: str,
    viewer: auth.AnyViewer,
    lang: Annotated[str | None, Query(max_length=100)] = None,
) -> Response:
    """Return a template with its header."""
    board, definition = await lookup.task_of(context_of(request).store, viewer, name)
    starter = template_of(definition, board.name, lang)
    headers = _FILE_HEADERS | {"Content-Disposition": f'attachment; filename="{starter.name}"'}
    return Response(starter.content, media_type="text/plain", headers=headers)


@router.get("/boards/{name}/gpus")
async def gpus(request: Request, name: str, viewer: auth.AnyViewer) -> Response:
    """Show everyone's best on each GPU type."""
    context = context_of(request)
    board = await lookup.find_board(context.store, viewer, name)
    report = scaling_report(await scaling(context.store, viewer, name))
    charts = [each for each in report.blocks if isinstance(each, blocks.Chart)]
    values = {
        "title": report.title,
        "board": board,
        "texts": [each for each in report.blocks if isinstance(each, blocks.Text)],
        "tables": [each for each in report.blocks if isinstance(each, blocks.Table)],
        "charts": [(each.title, describe_chart(each), figures.as_data(each)) for each in charts],
    }
    return await rendering.page(request, viewer, "gpus.html", values)
