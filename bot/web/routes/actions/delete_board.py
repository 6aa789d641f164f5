"""`/edit/BOARD/delete`: deletes a board after its archive was downloaded and its name typed."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from bot.domain.accounts import require_creator
from bot.domain.board import Board
from bot.domain.errors import UserError
from bot.services.boards import BoardArchive, Deletion, board_archive, delete_board
from bot.services.lookup import own_board
from bot.web.context import context_of
from bot.web.forms import Act, Fields
from bot.web.routes.actions.page import SignedIn, go, show
from bot.web.sessions import Browser

router = APIRouter(prefix="/edit/{name}")

PART_BYTES = 64 << 20
"""The largest zip of a board archive."""
_LONGEST_REASON = 300


@router.get("/delete")
async def confirm(request: Request, browser: SignedIn, name: str) -> Response:
    """Show what will be deleted, what can be saved, and the form for the exact name."""
    require_creator(browser.session.caller)
    board = await own_board(context_of(request).store, browser.session.caller, name)
    return await _form(request, browser, board)


@router.get("/keepsake")
async def hand_out(
    request: Request, browser: SignedIn, name: str, part: Annotated[int, Query(ge=1, le=10_000)] = 1
) -> Response:
    """Return the board's task versions and all sources, as a zip."""
    caller = browser.session.caller
    require_creator(caller)
    kept = await board_archive(
        context_of(request).store, caller, Deletion(name, name), zip_bytes=PART_BYTES
    )
    if part > len(kept.zips):
        raise UserError("unknown-part", f"there are {len(kept.zips)} parts")
    whole = len(kept.zips) == 1
    file = f"{kept.board.name}.zip" if whole else f"{kept.board.name}-{part}.zip"
    headers = {
        "Content-Disposition": f'attachment; filename="{file}"',
        "Cache-Control": "no-store",
    }
    if not whole:
        headers["Podium-Parts"] = str(len(kept.zips))
    return Response(kept.zips[part - 1], headers=headers, media_type="application/zip")


@router.post("/delete")
async def delete(request: Request, act: Act, name: str) -> Response:
    """Delete the board; refused when it has more submissions than the person was shown."""
    require_creator(act.caller)
    store, fields = context_of(request).store, act.fields
    board = await own_board(store, act.caller, name)
    deletion = Deletion(board.name, fields.text("typed"), fields.text("reason")[:_LONGEST_REASON])
    try:
        _require_saved(fields)
        kept = await board_archive(store, act.caller, deletion, zip_bytes=PART_BYTES)
        _require_told(fields, kept)
        await delete_board(store, act.caller, deletion, kept)
    except UserError as error:
        return await _form(request, act.browser, board, fault=error)
    return go("/create", "deleted")


def _require_saved(fields: Fields) -> None:
    if fields.text("saved") != "yes":
        raise UserError("not-saved", "say that you have saved the sources, or need none")


def _require_told(fields: Fields, kept: BoardArchive) -> None:
    if fields.text("told") != _state(kept.board, kept.submissions):
        words = "the board has moved on since this page was opened; download it once more"
        raise UserError("board-moved", words)


def _state(board: Board, submissions: int) -> str:
    """Return a digest that changes when the board changes."""
    return f"{board.id} {board.task_version} {submissions}"


async def _form(
    request: Request, browser: Browser, board: Board, fault: UserError | None = None
) -> Response:
    count = len(await context_of(request).store.submissions.to(board.id))
    values = {
        "title": f"Delete {board.name}",
        "board": board,
        "count": count,
        "told_state": _state(board, count),
    }
    return await show(request, browser, "acting/delete.html", values, fault=fault)
