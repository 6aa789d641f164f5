"""`/leaderboards/NAME/task`: what a board asks for."""

from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Path, Query, Request, Response

from bot.domain.api.boards import TaskAnswer
from bot.domain.errors import unknown_name
from bot.domain.tasks.template import shown_files, template_of
from bot.services.lookup import find_task
from bot.web.auth import AnyViewer
from bot.web.context import door_of
from bot.web.routes.api.arguments import BoardName
from bot.web.routes.api.board_bodies import task_answer
from bot.web.routes.api.bodies import NO_STORE, unkept

router = APIRouter(
    prefix="/leaderboards/{name}", tags=["leaderboards"], dependencies=[Depends(unkept)]
)
_TEXT: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": {"text/plain": {"schema": {"type": "string"}}}}
}


@router.get("/task")
async def task(request: Request, name: BoardName, viewer: AnyViewer) -> TaskAnswer:
    """The task by which new submissions are judged."""
    return task_answer(*await find_task(door_of(request).store, viewer, name))


@router.get("/task/files/{file}", response_class=Response, responses=_TEXT)
async def file(
    request: Request,
    name: BoardName,
    file: Annotated[str, Path(max_length=100, examples=["reference.py"])],
    viewer: AnyViewer,
) -> Response:
    """A file of the task, as text."""
    board, version = await find_task(door_of(request).store, viewer, name)
    files = shown_files(version.definition, board.name)
    if file not in files:
        raise unknown_name("file", file, files)
    return _text(files[file], file)


@router.get("/template", response_class=Response, responses=_TEXT)
async def template(
    request: Request,
    name: BoardName,
    viewer: AnyViewer,
    lang: Annotated[str | None, Query(max_length=100, description="A language of the task")] = None,
) -> Response:
    """A file to begin with, whose heading names the board."""
    board, version = await find_task(door_of(request).store, viewer, name)
    found = template_of(version.definition, board.name, lang)
    return _text(found.text, found.name)


def _text(text: str, name: str) -> Response:
    """Text that no browser takes for anything else."""
    headers = {
        **NO_STORE,
        "Content-Disposition": f'attachment; filename="{name}"',
        "X-Content-Type-Options": "nosniff",
    }
    return Response(text, media_type="text/plain; charset=utf-8", headers=headers)
