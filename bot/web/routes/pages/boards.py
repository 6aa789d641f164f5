"""The list of boards, and the pages of each: standings, season, task, and how kernels scale."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from bot.domain.board import Board, Viewer
from bot.domain.errors import UserError
from bot.domain.leaderboard import BoardOverview, BoardStandings
from bot.domain.records import FailedRun
from bot.domain.scoring import Score, Standing
from bot.domain.tasks.template import template_of
from bot.reports.blocks import Attachment, Chart, Table, Text
from bot.reports.charts import as_table, describe_chart, scaling_report, season_chart
from bot.reports.standings import absent_table, standings_notes, standings_table
from bot.reports.tasks import task_report
from bot.services import lookup
from bot.services.boards import list_boards as service
from bot.services.standings import board_standings, leaderboard, scaling, season
from bot.web.auth import AnyViewer
from bot.web.context import WebContext, context_of, is_here
from bot.web.figures import IntervalMark, as_data, spans
from bot.web.rendering import RenderedPage, page, sent, sheet

router = APIRouter()
_FIRSTS = 2
"""Up to this many people who share the first rank are all named."""


@router.get("/")
async def boards(request: Request, viewer: AnyViewer) -> Response:
    """Show the boards, those that close soonest first."""
    door = context_of(request)
    now = door.clock.now()
    found = sorted(await service(door.store, viewer), key=_closing)
    best = [score for each in found for score in each.best]
    values = {
        "title": "Leaderboards",
        "open": [each for each in found if each.board.is_open(now)],
        "ended": [each for each in reversed(found) if not each.board.is_open(now)],
        "firsts": {(each.task_version, each.gpu): await _firsts(door, each) for each in best},
        "now": now,
        "is_here": is_here(request),
        "may_create": viewer.is_creator,
    }
    return await page(request, viewer, "boards.html", values)


def first_names(entries: Sequence[Standing]) -> str:
    """Return the names of those who share the first rank, at most two; empty without entries."""
    names = [each.score.person_name for each in entries if each.rank == 1]
    return f"{names[0]} and {len(names) - 1} more" if len(names) > _FIRSTS else ", ".join(names)


async def _firsts(door: WebContext, best: Score) -> str:
    """Return the names of those who share the first rank with this score."""

    async def make() -> str:
        found = await leaderboard(door.store, best.task_version, best.gpu)
        return first_names(found.entries) or best.person_name

    return await door.kept.get(("firsts", best.task_version, best.gpu), FRESH_S, make)


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


class Wanted(BaseModel):
    """The query parameters of a board's page."""

    model_config = ConfigDict(extra="ignore")

    gpu: Annotated[str | None, Field(max_length=64)] = None
    version: Annotated[int | None, Field(ge=1, lt=1 << 31)] = None
    person: Annotated[str, Field(max_length=100)] = ""
    page: Annotated[int, Field(ge=1, le=100_000)] = 1


@dataclass(frozen=True, slots=True)
class StandingRow:
    """A standing with its cells and its place on the common scale."""

    standing: Standing
    cells: tuple[str, ...]
    span: IntervalMark


@dataclass(frozen=True, slots=True)
class Absence:
    """A person who is not ranked, and why."""

    refusal: FailedRun
    cells: tuple[str, ...]


@router.get("/boards/{name}")
async def board(
    request: Request, name: str, viewer: AnyViewer, wanted: Annotated[Wanted, Query()]
) -> Response:
    """Show the standings; the page is rendered once for all who request it at the same time."""
    door = context_of(request)

    async def make() -> RenderedPage:
        values = await _values(door, viewer, name, wanted)
        return await sheet(request, viewer, "board.html", values)

    key = ("board", viewer, name, *wanted.model_dump().values())
    return sent(request, await door.kept.get(key, FRESH_S, make))


async def _values(door: WebContext, viewer: Viewer, name: str, wanted: Wanted) -> dict[str, Any]:
    found = await lookup.find_board(door.store, viewer, name)
    gpu = wanted.gpu or found.gpus[0]
    (leaderboard,) = await board_standings(door.store, viewer, name, gpu, version=wanted.version)
    return {
        "title": f"{found.name} on {leaderboard.gpu}",
        "board": found,
        "leaderboard": leaderboard,
        "versions": await door.store.boards.versions(found.id),
        "wanted": wanted,
        "now": door.clock.now(),
        "firsts": first_names(leaderboard.entries),
        **_shown(leaderboard, wanted),
    }


@router.get("/boards/{name}/season")
async def season_page(
    request: Request, name: str, viewer: AnyViewer, gpu: GpuQuery = None
) -> Response:
    """Show the season as a table, for readers without the plot."""
    door = context_of(request)
    found = await lookup.find_board(door.store, viewer, name)
    plot = await _season(door, viewer, found, gpu)
    chart = plot.chart
    values = {
        "title": f"The season of {found.name} on {plot.gpu}",
        "board": found,
        "gpu": plot.gpu,
        "words": "" if chart is None else describe_chart(chart),
        "season": None if chart is None else as_table(chart, _TABLE_ROWS),
    }
    return await page(request, viewer, "season.html", values)


@router.get("/boards/{name}/season.json")
async def season_data(
    request: Request, name: str, viewer: AnyViewer, gpu: GpuQuery = None
) -> Response:
    """Return the data of the season's plot, without any series while there are no ranks."""
    door = context_of(request)
    found = await lookup.find_board(door.store, viewer, name)
    body = (await _season(door, viewer, found, gpu)).data
    headers = {
        "Cache-Control": "private, max-age=5",
        "Vary": "Authorization, Cookie",
    }
    return Response(body, media_type="application/json", headers=headers)


@dataclass(frozen=True, slots=True)
class _Plot:
    """A season's chart on one GPU type, also as data for the script; None when it is empty."""

    gpu: str
    chart: Chart | None
    data: bytes


async def _season(door: WebContext, viewer: Viewer, found: Board, gpu: str | None) -> _Plot:
    """Return a plot, read and written once for all who may see the board."""

    async def make() -> _Plot:
        read = await season(door.store, door.clock, viewer, found.name, gpu=gpu)
        chart = season_chart(read)
        data = {"series": []} if chart is None else as_data(chart)
        return _Plot(read.leaderboard.gpu, chart, json.dumps(data, separators=(",", ":")).encode())

    return await door.kept.get(("season", found, gpu), SEASON_FRESH_S, make)


def _shown(leaderboard: BoardStandings, wanted: Wanted) -> dict[str, Any]:
    """Return the report's texts, and its tables after filtering."""
    named = [
        each for each in leaderboard.entries if _is_named(each.score.person_name, wanted.person)
    ]
    absent = [each for each in leaderboard.refused if _is_named(each.person_name, wanted.person)]
    pages = max(1, -(-len(named) // _ROWS))
    here = min(wanted.page, pages)
    rows = named[(here - 1) * _ROWS : here * _ROWS]
    table, scale = standings_table(leaderboard, rows), spans(rows, leaderboard.entries)
    missing = absent_table(absent[:_ROWS])
    places = () if scale is None else scale.rows
    return {
        "notes": list(standings_notes(leaderboard)),
        "columns": table.columns,
        "lines": list(map(StandingRow, rows, table.rows, places)),
        "scale": scale,
        "found": len(named),
        "pages": pages,
        "page": here,
        "absent_columns": missing.columns,
        "absent": list(map(Absence, absent, missing.rows)),
        "more_absent": max(0, len(absent) - _ROWS),
    }


def _is_named(name: str, wanted: str) -> bool:
    return wanted.strip().casefold() in name.casefold()


_FILE_HEADERS = {
    "Cache-Control": "private, no-store",
    "Content-Disposition": "attachment",
}


@router.get("/boards/{name}/task")
async def task(request: Request, name: str, viewer: AnyViewer) -> Response:
    """Show the description, the templates and every file."""
    door = context_of(request)
    board, definition = await lookup.task_of(door.store, viewer, name)
    report = task_report(board, definition)
    values = {
        "title": report.title,
        "board": board,
        "task": definition,
        "texts": [each for each in report.blocks if isinstance(each, Text)],
        "files": [each for each in report.blocks if isinstance(each, Attachment)],
        "now": door.clock.now(),
    }
    return await page(request, viewer, "task.html", values)


@router.get("/boards/{name}/task/{file}")
async def task_file(request: Request, name: str, file: str, viewer: AnyViewer) -> Response:
    """Show one of the task's files."""
    board, definition = await lookup.task_of(context_of(request).store, viewer, name)
    for each in task_report(board, definition).blocks:
        if isinstance(each, Attachment) and each.name == file:
            return Response(each.data, media_type="text/plain", headers=_FILE_HEADERS)
    raise UserError("unknown-file", "the task has no file of this name; its page lists them")


@router.get("/boards/{name}/template")
async def template(
    request: Request,
    name: str,
    viewer: AnyViewer,
    lang: Annotated[str | None, Query(max_length=100)] = None,
) -> Response:
    """Return a template with its header."""
    board, definition = await lookup.task_of(context_of(request).store, viewer, name)
    found = template_of(definition, board.name, lang)
    headers = _FILE_HEADERS | {"Content-Disposition": f'attachment; filename="{found.name}"'}
    return Response(found.content, media_type="text/plain", headers=headers)


@router.get("/boards/{name}/gpus")
async def gpus(request: Request, name: str, viewer: AnyViewer) -> Response:
    """Show everyone's best on each GPU type."""
    door = context_of(request)
    board = await lookup.find_board(door.store, viewer, name)
    report = scaling_report(await scaling(door.store, viewer, name))
    charts = [each for each in report.blocks if isinstance(each, Chart)]
    values = {
        "title": report.title,
        "board": board,
        "texts": [each for each in report.blocks if isinstance(each, Text)],
        "tables": [each for each in report.blocks if isinstance(each, Table)],
        "charts": [(each.title, describe_chart(each), as_data(each)) for each in charts],
    }
    return await page(request, viewer, "gpus.html", values)
