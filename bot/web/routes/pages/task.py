"""`/boards/NAME/task` and `/gpus`: a board's task, and how kernels scale."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from bot.domain.errors import UserError
from bot.domain.tasks.template import template_of
from bot.reports.blocks import Attachment, Chart, Table, Text
from bot.reports.charts import in_words, scaling_report
from bot.reports.tasks import task_report
from bot.services.lookup import find_board, task_of
from bot.services.standings import scaling
from bot.web.auth import AnyViewer
from bot.web.context import context_of
from bot.web.figures import as_data
from bot.web.rendering import page

router = APIRouter(prefix="/boards/{name}")
_HEADERS = {
    "Cache-Control": "private, no-store",
    "Content-Disposition": "attachment",
}


@router.get("/task")
async def task(request: Request, name: str, viewer: AnyViewer) -> Response:
    """Show the description, the templates and every file."""
    door = context_of(request)
    board, definition = await task_of(door.store, viewer, name)
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


@router.get("/task/{file}")
async def task_file(request: Request, name: str, file: str, viewer: AnyViewer) -> Response:
    """Show one of the task's files."""
    board, definition = await task_of(context_of(request).store, viewer, name)
    for each in task_report(board, definition).blocks:
        if isinstance(each, Attachment) and each.name == file:
            return Response(each.data, media_type="text/plain", headers=_HEADERS)
    raise UserError("unknown-file", "the task has no file of this name; its page lists them")


@router.get("/template")
async def template(
    request: Request,
    name: str,
    viewer: AnyViewer,
    lang: Annotated[str | None, Query(max_length=100)] = None,
) -> Response:
    """Return a template with its header."""
    board, definition = await task_of(context_of(request).store, viewer, name)
    found = template_of(definition, board.name, lang)
    headers = _HEADERS | {"Content-Disposition": f'attachment; filename="{found.name}"'}
    return Response(found.content, media_type="text/plain", headers=headers)


@router.get("/gpus")
async def gpus(request: Request, name: str, viewer: AnyViewer) -> Response:
    """Show everyone's best on each GPU type."""
    door = context_of(request)
    board = await find_board(door.store, viewer, name)
    report = scaling_report(await scaling(door.store, viewer, name))
    charts = [each for each in report.blocks if isinstance(each, Chart)]
    values = {
        "title": report.title,
        "board": board,
        "texts": [each for each in report.blocks if isinstance(each, Text)],
        "tables": [each for each in report.blocks if isinstance(each, Table)],
        "charts": [(each.title, in_words(each), as_data(each)) for each in charts],
    }
    return await page(request, viewer, "gpus.html", values)
