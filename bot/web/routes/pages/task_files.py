"""The files of a board's task: downloads, drawings and templates."""

from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse

from bot.domain.board import Viewer
from bot.domain.errors import UserError
from bot.domain.tasks.template import shown_files, template_of
from bot.services import lookup
from bot.web import auth
from bot.web.context import context_of

router = APIRouter(prefix="/boards/{name}")
_HEADERS = {"Cache-Control": "private, no-store", "Content-Disposition": "attachment"}
_DRAWING_HEADERS = {
    "Cache-Control": "private, max-age=60",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Vary": "Authorization, Cookie",
    "X-Content-Type-Options": "nosniff",
}
"""A drawing runs no script and loads nothing, even if it is opened by itself."""


@router.get("/task")
async def task(request: Request, name: str, viewer: auth.AnyViewer) -> Response:
    """Redirect the former address of a task to the board's page."""
    board = await lookup.find_board(context_of(request).store, viewer, name)
    return RedirectResponse(f"/boards/{quote(board.name)}#task")


@router.get("/task/{file}")
async def task_file(request: Request, name: str, file: str, viewer: auth.AnyViewer) -> Response:
    """Return one of the task's files as a download."""
    text = await _text_of(request, viewer, name, file)
    return Response(text, media_type="text/plain", headers=_HEADERS)


@router.get("/drawings/{file}")
async def drawing(request: Request, name: str, file: str, viewer: auth.AnyViewer) -> Response:
    """Return an SVG file of the task, for its statement."""
    if not file.endswith(".svg"):
        raise UserError("unknown-file", "the task has no drawing of this name")
    text = await _text_of(request, viewer, name, file)
    return Response(text, media_type="image/svg+xml", headers=_DRAWING_HEADERS)


async def _text_of(request: Request, viewer: Viewer, name: str, file: str) -> str:
    board, definition = await lookup.task_of(context_of(request).store, viewer, name)
    text = shown_files(definition, board.name).get(file)
    if text is None:
        raise UserError("unknown-file", "the task has no file of this name; its page lists them")
    return text


@router.get("/template")
async def template(
    request: Request,
    name: str,
    viewer: auth.AnyViewer,
    lang: Annotated[str | None, Query(max_length=100)] = None,
) -> Response:
    """Return a template with its header."""
    board, definition = await lookup.task_of(context_of(request).store, viewer, name)
    starter = template_of(definition, board.name, lang)
    headers = _HEADERS | {"Content-Disposition": f'attachment; filename="{starter.name}"'}
    return Response(starter.content, media_type="text/plain", headers=headers)
