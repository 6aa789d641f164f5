"""`/leaderboards`: the boards that exist for whoever asks."""

from fastapi import APIRouter, Depends, Request

from bot.domain.api.base import MOST_ON_A_PAGE
from bot.domain.api.boards import BoardAnswer, BoardsAnswer
from bot.services import boards as service
from bot.web.auth import AnyViewer
from bot.web.context import door_of
from bot.web.routes.api.arguments import BoardName, NameCursor, PageLimit
from bot.web.routes.api.board_bodies import board_answer
from bot.web.routes.api.bodies import unkept

router = APIRouter(prefix="/leaderboards", tags=["leaderboards"], dependencies=[Depends(unkept)])


@router.get("")
async def leaderboards(
    request: Request,
    viewer: AnyViewer,
    *,
    limit: PageLimit = MOST_ON_A_PAGE,
    cursor: NameCursor = None,
) -> BoardsAnswer:
    """The boards that you may see, with their participants and best times."""
    door = door_of(request)
    found = await service.boards(door.store, viewer, after=cursor or "", limit=limit + 1)
    now = door.clock.now()
    shown = tuple(board_answer(each, now) for each in found[:limit])
    return BoardsAnswer(boards=shown, next=shown[-1].name if len(found) > limit else None)


@router.get("/{name}")
async def leaderboard(request: Request, name: BoardName, viewer: AnyViewer) -> BoardAnswer:
    """One board."""
    door = door_of(request)
    return board_answer(await service.board(door.store, viewer, name), door.clock.now())
