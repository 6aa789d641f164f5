"""`/join`: a person with an invite code joins a private board."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from bot.domain.errors import UserError
from bot.services.invites import invited_board, join_board
from bot.web.context import context_of
from bot.web.routes.actions.page import SignedIn, quoted, redirect, show
from bot.web.sessions import Browser, SmallForm

router = APIRouter(prefix="/join")


@router.get("")
async def ask(
    request: Request, browser: SignedIn, code: Annotated[str, Query(max_length=200)] = ""
) -> Response:
    """Show the board of a code; the code is used only when the button is pressed."""
    return await _page(request, browser, code.strip())


@router.post("")
async def join(request: Request, submitted: SmallForm) -> Response:
    """Use the code, and redirect to the board."""
    code = submitted.fields.text("code")
    try:
        board = await join_board(context_of(request).store, submitted.caller, code)
    except UserError as error:
        return await _page(request, submitted.browser, code, error)
    return redirect(quoted("boards", board.name))


async def _page(
    request: Request, browser: Browser, code: str, fault: UserError | None = None
) -> Response:
    board = None
    try:
        board = await invited_board(context_of(request).store, code) if code else None
    except UserError as error:
        fault = error
    values = {"title": "Join a board", "code": code, "board": board}
    return await show(request, browser, "actions/join.html", values, fault=fault)
