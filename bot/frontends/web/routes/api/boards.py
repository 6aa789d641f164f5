"""`/leaderboards`: the boards that exist for whoever asks."""

from fastapi import APIRouter, Depends, Request

from bot.domain.api.boards import BoardAnswer, BoardsAnswer
from bot.domain.api.wire import MOST_ON_A_PAGE
from bot.frontends.web.door import door_of
from bot.frontends.web.routes.api.arguments import BoardName, NameCursor, PageLimit
from bot.frontends.web.routes.api.bodies import unkept
from bot.frontends.web.routes.api.shapes import board_answer
from bot.frontends.web.viewers import AnyViewer
from bot.services import boards as service

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
