"""`/boards/NAME`: the task, the standings, the season and the viewer's own runs on one page."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from bot.domain.board import NOBODY, Board, Viewer
from bot.domain.ids import PersonId
from bot.domain.leaderboard import BoardStandings
from bot.domain.records import FailedRun
from bot.domain.scoring import Standing
from bot.domain.tasks.grading import not_run
from bot.reports import blocks, figures, history, tasks
from bot.reports.charts import as_data, describe_chart, scaling_report
from bot.reports.confirmations import confirmation_line, final_table, pending_table
from bot.reports.standings import absent_table, first_names, gaps, standings_notes, standings_table
from bot.services import lookup
from bot.services.history import history_of
from bot.services.standings import MAX_HISTORY, board_standings, ranks_at, scaling, task_version
from bot.web import auth, rendering
from bot.web.context import WebContext, context_of
from bot.web.markup import highlighted, statement
from runners.contract.task import TaskDefinition

router = APIRouter(prefix="/boards/{name}")
_ROWS = 50
_OWN_ROWS = 10
"""The most submissions of the viewer that are listed."""
FRESH_S = 1.0
"""How long a rendered page is reused for the same request."""
MOVES_FRESH_S = 60.0
"""How long the ranks of yesterday are reused."""
_REFERENCE = "reference.py"


class Sort(StrEnum):
    """What the standings are sorted by."""

    RANK = "rank"
    WHO = "who"
    RUNS = "ranked runs"
    SUBMISSION = "submission"


_SORTED: Mapping[Sort, Callable[[Standing], Any]] = {
    Sort.WHO: lambda each: each.score.person_name.casefold(),
    Sort.RUNS: lambda each: -each.attempts,
    Sort.SUBMISSION: lambda each: -each.score.submission,
}


class BoardPageQuery(BaseModel):
    """The query parameters of a board's page."""

    model_config = ConfigDict(extra="ignore")

    gpu: Annotated[str | None, Field(max_length=64)] = None
    version: Annotated[int | None, Field(ge=1, lt=1 << 31)] = None
    person: Annotated[str, Field(max_length=100)] = ""
    page: Annotated[int, Field(ge=1, le=100_000)] = 1
    sort: Sort = Sort.RANK


PageQuery = Annotated[BoardPageQuery, Query()]


@dataclass(frozen=True, slots=True)
class StandingRow:
    """A standing with its cells, its interval on the common scale, and yesterday's rank."""

    standing: Standing
    cells: tuple[str, ...]
    span: figures.IntervalMark
    moved: int | None
    """How many ranks it rose since yesterday; None if it had no rank then, or that is unknown."""
    is_new: bool


@dataclass(frozen=True, slots=True)
class Absence:
    """A person who is not ranked, and why, in words."""

    refusal: FailedRun
    verdict: str


@router.get("")
async def board(request: Request, name: str, viewer: auth.AnyViewer, query: PageQuery) -> Response:
    """Show everything; requests of the same viewer within a second share one rendered page."""
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
    shown, past = await asyncio.gather(
        _standings(context, viewer, board, query),
        history_of(context.store, viewer.person, board, limit=_OWN_ROWS),
    )
    shared = await _shared_values(context, shown, query)
    address = {"gpu": shown.gpu, "version": query.version, "person": query.person}
    position = query.model_dump(include={"sort", "page"}, exclude_defaults=True, mode="json")
    return {
        **shared,
        "title": f"{board.name} on {shown.gpu}",
        "board": board,
        "is_own": board.belongs_to(viewer),
        "back": f"/boards/{quote(board.name)}?" + rendering.query(address | position),
        "events": f"/boards/{quote(board.name)}/events?"
        + rendering.query(address | {"sort": query.sort.value, "page": query.page}),
        "leaderboard": shown,
        "query": query,
        "now": context.clock.now(),
        "whole_season": MAX_HISTORY,
        "live": _own_line(viewer, shown) + shared["everyone"],
        "past": list(zip(past, history.history_table(past).rows, strict=True)),
    }


async def _task_values(board: Board, definition: TaskDefinition) -> dict[str, Any]:
    report = tasks.task_report(board, definition)
    texts = [each for each in report.blocks if isinstance(each, blocks.Text)]
    attached = [each for each in report.blocks if isinstance(each, blocks.Attachment)]
    drawings = f"/boards/{quote(board.name)}/drawings"
    reference = definition.files.get(_REFERENCE, "")
    return {
        "task": definition,
        "about": tasks.about(definition),
        "statement": await statement(definition.description, drawings, tuple(definition.files)),
        "remarks": [each.text for each in texts[1:]],
        "reference": await highlighted(reference, _REFERENCE) if reference else "",
        "files": [(each.name, len(each.data)) for each in attached],
        "unused": not_run(definition),
    }


@router.get("/events")
async def events(request: Request, name: str, viewer: auth.AnyViewer, query: PageQuery) -> Response:
    """Stream the standings after each change."""
    context = context_of(request)
    board = await lookup.find_board(context.store, viewer, name)
    await _standings(context, viewer, board, query)

    async def part() -> rendering.Part:
        board = await lookup.find_board(context.store, viewer, name)
        shown = await _standings(context, viewer, board, query)
        shared = await _shared_values(context, shown, query)
        return _own_line(viewer, shown) + shared["everyone"], False

    return rendering.live(context, part, lambda: auth.has_same_viewer(request, viewer))


async def _standings(
    context: WebContext, viewer: Viewer, board: Board, query: BoardPageQuery
) -> BoardStandings:
    gpu = query.gpu or board.gpus[0]
    (shown,) = await board_standings(context.store, viewer, board, gpu, version=query.version)
    return shown


async def _shared_values(
    context: WebContext, shown: BoardStandings, query: BoardPageQuery
) -> dict[str, Any]:
    """Return what is the same for all viewers, which is made once per change."""
    board = shown.board

    async def make() -> dict[str, Any]:
        before = await _yesterday(context, shown)
        attempts = sum(each.attempts for each in shown.entries)
        values = {"board": board, "leaderboard": shown, "query": query, "attempts": attempts}
        values |= _standings_values(shown, query, before)
        version = await task_version(context.store, board.task_version)
        return {
            "everyone": rendering.render("parts/standings.html", values),
            "attempts": attempts,
            "notes": list(standings_notes(shown)),
            "versions": await context.store.boards.versions(board.id),
            **await _task_values(board, version.definition),
        }

    key = ("standings", board, shown.version, shown.gpu, *query.model_dump().values())
    state = shown.revision, shown.final, shown.reference_failure
    return await context.cache.get((*key, *state), MOVES_FRESH_S, make)


def _own_line(viewer: Viewer, shown: BoardStandings) -> str:
    """Return the viewer's rank with its gaps, and their run that waits or has failed, if any."""
    if viewer.person == NOBODY:
        return ""
    found = enumerate(shown.entries)
    at, own = next((each for each in found if each[1].score.person == viewer.person), (0, None))
    failed = next((each for each in shown.refused if each.person == viewer.person), None)
    waiting = [each for each in shown.pending if each.person == viewer.person]
    if own is None and failed is None and not waiting:
        return ""
    values = {
        "leaderboard": shown,
        "own": own,
        "page": at // _ROWS + 1,
        "shared": own is not None and sum(each.rank == own.rank for each in shown.entries) > 1,
        "gaps": () if own is None else gaps(shown, own),
        "failed": None if failed is None else Absence(failed, absent_table((failed,)).rows[0][1]),
        "waiting": [(each.submission, confirmation_line(each).text) for each in waiting],
    }
    return rendering.render("parts/own_line.html", values)


async def _yesterday(context: WebContext, shown: BoardStandings) -> Mapping[PersonId, int] | None:
    """Return the rank of each person a day ago; None if that is unknown."""

    async def make() -> Mapping[PersonId, int] | None:
        moment = context.clock.now() - timedelta(days=1)
        return await ranks_at(context.store, shown.entries, moment)

    key = ("yesterday", shown.board.id, shown.version, shown.gpu)
    return await context.cache.get(key, MOVES_FRESH_S, make)


def _standings_values(
    shown: BoardStandings, query: BoardPageQuery, before: Mapping[PersonId, int] | None
) -> dict[str, Any]:
    """Return the tables after filtering and sorting."""
    named = [each for each in shown.entries if _is_named(each.score.person_name, query.person)]
    if query.sort in _SORTED:
        named.sort(key=_SORTED[query.sort])
    absent = [each for each in shown.refused if _is_named(each.person_name, query.person)]
    pages = max(1, -(-len(named) // _ROWS))
    number = min(query.page, pages)
    rows = named[(number - 1) * _ROWS : number * _ROWS]
    table, scale = standings_table(shown, rows), figures.spans(rows, shown.entries)
    return {
        "firsts": first_names(shown.entries),
        "columns": table.columns,
        "lines": [
            _row(standing, cells, span, before)
            for standing, cells, span in zip(
                rows, table.rows, () if scale is None else scale.rows, strict=True
            )
        ],
        "scale": scale,
        "found": len(named),
        "pages": pages,
        "page": number,
        "sorts": list(Sort),
        "waiting": pending_table(shown.pending) if shown.pending else None,
        "final": final_table(shown.final),
        "absent": [
            Absence(each, row[1])
            for each, row in zip(absent, absent_table(absent[:_ROWS]).rows, strict=False)
        ],
        "more_absent": max(0, len(absent) - _ROWS),
    }


def _row(
    standing: Standing,
    cells: tuple[str, ...],
    span: figures.IntervalMark,
    before: Mapping[PersonId, int] | None,
) -> StandingRow:
    then = None if before is None else before.get(standing.score.person)
    moved = None if then is None else then - standing.rank
    return StandingRow(standing, cells, span, moved, bool(before) and then is None)


def _is_named(name: str, query: str) -> bool:
    return query.strip().casefold() in name.casefold()


@router.get("/gpus")
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
        "charts": [(each.title, describe_chart(each), as_data(each)) for each in charts],
    }
    return await rendering.page(request, viewer, "gpus.html", values)
