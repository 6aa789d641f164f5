"""`/api/v1/leaderboards`: boards and their tasks."""

from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Path, Query, Request, Response

from bot.domain.api.base import MOST_ON_A_PAGE
from bot.domain.api.boards import BoardAnswer, BoardsAnswer, TaskAnswer
from bot.domain.errors import unknown_name
from bot.domain.tasks.template import shown_files, template_of
from bot.services import boards as service
from bot.services.lookup import find_task
from bot.web.auth import AnyViewer
from bot.web.context import context_of
from bot.web.routes.api.board_bodies import board_answer, task_answer
from bot.web.routes.api.openapi import NO_STORE, BoardName, NameCursor, PageLimit, unkept

_boards = APIRouter(prefix="/leaderboards", tags=["leaderboards"], dependencies=[Depends(unkept)])


@_boards.get("")
async def leaderboards(
    request: Request,
    viewer: AnyViewer,
    *,
    limit: PageLimit = MOST_ON_A_PAGE,
    cursor: NameCursor = None,
) -> BoardsAnswer:
    """The boards that you may see, with their participants and best times."""
    door = context_of(request)
    found = await service.list_boards(door.store, viewer, after=cursor or "", limit=limit + 1)
    now = door.clock.now()
    shown = tuple(board_answer(each, now) for each in found[:limit])
    return BoardsAnswer(boards=shown, next=shown[-1].name if len(found) > limit else None)


@_boards.get("/{name}")
async def leaderboard(request: Request, name: BoardName, viewer: AnyViewer) -> BoardAnswer:
    """One board."""
    door = context_of(request)
    return board_answer(await service.board(door.store, viewer, name), door.clock.now())


_tasks = APIRouter(
    prefix="/leaderboards/{name}", tags=["leaderboards"], dependencies=[Depends(unkept)]
)
_TEXT: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": {"text/plain": {"schema": {"type": "string"}}}}
}


@_tasks.get("/task")
async def task(request: Request, name: BoardName, viewer: AnyViewer) -> TaskAnswer:
    """The task by which new submissions are judged."""
    return task_answer(*await find_task(context_of(request).store, viewer, name))


@_tasks.get("/task/files/{file}", response_class=Response, responses=_TEXT)
async def file(
    request: Request,
    name: BoardName,
    file: Annotated[str, Path(max_length=100, examples=["reference.py"])],
    viewer: AnyViewer,
) -> Response:
    """A file of the task, as text."""
    board, version = await find_task(context_of(request).store, viewer, name)
    files = shown_files(version.definition, board.name)
    if file not in files:
        raise unknown_name("file", file, files)
    return _text(files[file], file)


@_tasks.get("/template", response_class=Response, responses=_TEXT)
async def template(
    request: Request,
    name: BoardName,
    viewer: AnyViewer,
    lang: Annotated[str | None, Query(max_length=100, description="A language of the task")] = None,
) -> Response:
    """A file to begin with, whose heading names the board."""
    board, version = await find_task(context_of(request).store, viewer, name)
    found = template_of(version.definition, board.name, lang)
    return _text(found.text, found.name)


def _text(text: str, name: str) -> Response:
    """Return text that browsers do not interpret as anything else."""
    headers = {
        **NO_STORE,
        "Content-Disposition": f'attachment; filename="{name}"',
    }
    return Response(text, media_type="text/plain; charset=utf-8", headers=headers)


router = APIRouter()
router.include_router(_boards)
router.include_router(_tasks)
