"""`/docs`: how to submit with each front end."""

from fastapi import APIRouter, Request, Response

from bot.domain.board import Board, Viewer
from bot.services.lookup import visible_boards
from bot.web import auth, rendering
from bot.web.context import WebContext, context_of, is_here
from runners.languages import specs

router = APIRouter()


@router.get("/docs")
async def docs(request: Request, viewer: auth.AnyViewer) -> Response:
    """Show how to submit, and what the numbers mean."""
    context = context_of(request)
    board = await _example(context, viewer)
    values = {
        "title": "How to submit",
        "board": "BOARD" if board is None else board.name,
        "gpu": "GPU" if board is None else board.gpus[0],
        "has_discord": any(line.name == "discord" for line in context.connections),
        "base": _address(request),
        "is_here": is_here(request),
        "languages": specs(),
    }
    return await rendering.page(request, viewer, "docs.html", values)


async def _example(context: WebContext, viewer: Viewer) -> Board | None:
    """Return a board for the examples, an open one if there is any."""
    boards = await visible_boards(context.store, viewer)
    now = context.clock.now()
    return next((each for each in boards if each.is_open(now)), boards[0] if boards else None)


def _address(request: Request) -> str:
    """Return the public address, else the one that was connected to; never the `Host` header."""
    public = context_of(request).public_url
    if public is not None:
        return public
    host, port = request.scope.get("server") or ("127.0.0.1", None)
    name = f"[{host}]" if ":" in host else host
    return f"{request.url.scheme}://{name}" + (f":{port}" if port else "")
