"""The home page with all boards, the pages of competitions, and the galleries of boards."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from bot.domain.board import Board, Viewer
from bot.domain.competition import LONGEST_NAME
from bot.domain.leaderboard import BoardOverview
from bot.domain.scoring import Score
from bot.reports.competition import dates_line, overall_table, points_line
from bot.reports.standings import first_names
from bot.reports.tasks import about
from bot.services.boards import list_boards
from bot.services.competitions import competition_standings, visible_competitions
from bot.services.history import gallery
from bot.services.standings import leaderboard, task_version
from bot.web import auth, markup, rendering
from bot.web.context import WebContext, context_of, is_here

router = APIRouter()
_MOST_LISTED = 10
"""The most competitions on the home page."""
_ROWS = 100
_MOST_PEOPLE = 200
"""The most people of an overall ranking on its page; the CSV has all."""
FRESH_S = 1.0
"""How many seconds a rendered page, or the names of a board's leaders, are reused."""


@dataclass(frozen=True, slots=True)
class BoardCard:
    """A board on the home page: what it is about, and how many of its people are ranked."""

    overview: BoardOverview
    about: str
    firsts: Mapping[str, str]
    """Who has the first rank, by GPU type."""
    ranked: int

    def matches(self, words: str, gpu: str) -> bool:
        """Return whether it has the words in its name or text, and the GPU type."""
        board = self.overview.board
        text = f"{board.name} {self.about}".casefold()
        return words.strip().casefold() in text and (not gpu or gpu in board.gpus)


@router.get("/")
async def boards(
    request: Request,
    viewer: auth.AnyViewer,
    words: Annotated[str, Query(alias="q", max_length=100)] = "",
    gpu: Annotated[str, Query(max_length=64)] = "",
) -> Response:
    """Show the open boards, those that close soonest first, and the closed ones."""
    context = context_of(request)
    now = context.clock.now()
    overviews = sorted(await list_boards(context.store, viewer), key=_closing)
    cards = [await _card(context, each) for each in overviews]
    shown = [each for each in cards if each.matches(words, gpu)]
    values = {
        "title": "Boards",
        "has_boards": bool(cards),
        "open": [each for each in shown if each.overview.board.is_open(now)],
        "ended": [each for each in reversed(shown) if not each.overview.board.is_open(now)],
        "gpus": sorted({each for overview in overviews for each in overview.board.gpus}),
        "words": words,
        "gpu": gpu,
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
        shown = found.entries[:_MOST_PEOPLE]
        overall = overall_table(found, shown)
        values = {
            "title": found.competition.name,
            "competition": found.competition,
            "schedule": sorted(found.competition.boards, key=_closes),
            "dates": dates_line(found.competition, now),
            "points": points_line(found.competition.points),
            "overall": overall,
            "entries": list(zip(shown, overall.rows, strict=True)),
            "more": len(found.entries) - len(shown),
            "now": now,
            "may_edit": viewer.is_creator and found.competition.belongs_to(viewer),
        }
        return await rendering.render_page(request, viewer, "competition.html", values)

    page = await context.cache.get(("competition", viewer, name), FRESH_S, make)
    return rendering.page_response(request, page)


@router.get("/boards/{name}/gallery")
async def gallery_page(
    request: Request,
    name: str,
    viewer: auth.AnyViewer,
    gpu: Annotated[str | None, Query(max_length=64)] = None,
) -> Response:
    """Show the kernels with the first three ranks whose sources the board shows."""
    context = context_of(request)

    async def make() -> rendering.RenderedPage:
        found = await gallery(context.store, context.clock, viewer, name, gpu=gpu)
        values = {
            "leaderboard": found.leaderboard,
            "gallery": found,
            "kernels": [
                (
                    each,
                    await markup.statement(each.submission.note, "", ()),
                    await markup.highlighted(each.source, each.submission.file_name),
                )
                for each in found.winners
            ],
        }
        return await rendering.render_page(request, viewer, "gallery.html", values)

    key = ("gallery", viewer, name, gpu)
    return rendering.page_response(request, await context.cache.get(key, FRESH_S, make))


async def _card(context: WebContext, overview: BoardOverview) -> BoardCard:
    version = await task_version(context.store, overview.board.task_version)
    found = {each.gpu: await _firsts(context, each) for each in overview.best}
    return BoardCard(
        overview,
        about(version.definition),
        {gpu: names for gpu, (names, _) in found.items()},
        max((count for _, count in found.values()), default=0),
    )


async def _firsts(context: WebContext, best: Score) -> tuple[str, int]:
    """Return who shares the first rank with this score, and how many people are ranked."""

    async def make() -> tuple[str, int]:
        found = await leaderboard(context.store, best.task_version, best.gpu)
        return first_names(found.entries) or best.person_name, len(found.entries)

    return await context.cache.get(("firsts", best.task_version, best.gpu), FRESH_S, make)


def _closing(overview: BoardOverview) -> tuple[float, str]:
    """Return the sort key of a board's deadline; boards without one come last."""
    return _closes(overview.board)


def _closes(board: Board) -> tuple[float, str]:
    return math.inf if board.deadline is None else board.deadline.timestamp(), board.name
