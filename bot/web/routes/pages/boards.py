"""`/`: every leaderboard that the viewer may see, open ones first."""

import math

from fastapi import APIRouter, Request, Response

from bot.domain.leaderboard import BoardOverview
from bot.services.boards import boards as service
from bot.web.auth import AnyViewer
from bot.web.context import door_of, is_here
from bot.web.rendering import page

router = APIRouter()


@router.get("/")
async def boards(request: Request, viewer: AnyViewer) -> Response:
    """The boards, those that close soonest first."""
    door = door_of(request)
    now = door.clock.now()
    found = sorted(await service(door.store, viewer), key=_closing)
    values = {
        "title": "Leaderboards",
        "open": [each for each in found if each.board.is_open(now)],
        "ended": [each for each in reversed(found) if not each.board.is_open(now)],
        "now": now,
        "is_here": is_here(request),
        "may_create": viewer.is_creator,
    }
    return await page(request, viewer, "boards.html", values)


def _closing(overview: BoardOverview) -> tuple[float, str]:
    """What sorts boards by their deadlines, endless ones last."""
    deadline = overview.board.deadline
    return math.inf if deadline is None else deadline.timestamp(), overview.board.name
