"""What every page with a form has: who is signed in, the form's stamp, and what was done."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Depends, Request, Response
from fastapi.responses import RedirectResponse
from starlette.exceptions import HTTPException

from bot.domain.board import NOBODY, Viewer
from bot.domain.errors import UserError
from bot.web.errors import status_of
from bot.web.rendering import SECURITY, draw, sheet
from bot.web.sessions import Browser, browser_of

DONE = {
    "changed": "It is changed.",
    "unchanged": "Everything was so already.",
    "invited": "They may see the board.",
    "uninvited": "They may not see the board any more.",
    "rejudging": "It is judged again; the standings fill as results come.",
    "deleted": "The board is gone, with everything of it.",
    "revoked": "The token is revoked: whatever uses it is refused.",
    "ended": "Those browsers are signed out.",
    "notices": "Your wishes are noted.",
    "banned": "The person may not submit any more; what was unfinished is stopped.",
    "unbanned": "The person may submit again.",
    "disqualified": "The submission is not ranked any more.",
    "requalified": "The submission is ranked again.",
    "paused": "It is paused.",
    "resumed": "It goes on.",
    "limited": "The limit holds from now on.",
    "unlimited": "The limit is gone.",
}
"""What was done, by the word for it in the address, so that an address cannot inject text."""


async def signed_in(request: Request) -> Browser:
    """Return who reads a page that needs an account; others must sign in first."""
    browser = await browser_of(request)
    if browser is None:
        query = f"?{request.url.query}" if request.url.query else ""
        there = f"/sign-in?next={quote(request.url.path + query, safe='')}"
        raise HTTPException(HTTPStatus.SEE_OTHER, headers={"Location": there})
    return browser


SignedIn = Annotated[Browser, Depends(signed_in)]


async def show(
    request: Request,
    browser: Browser | None,
    template: str,
    values: Mapping[str, Any],
    *,
    fault: UserError | None = None,
) -> Response:
    """Return an uncacheable page; with a fault, it has its message and status."""
    viewer = Viewer(NOBODY) if browser is None else browser.session.caller
    shown = {
        "stamp": "" if browser is None else browser.stamp,
        "fault": "" if fault is None else fault.message,
        "done": DONE.get(request.query_params.get("done", ""), ""),
        "is_admin": viewer.sees_all,
        **values,
    }
    status = HTTPStatus.OK if fault is None else status_of(fault.code)
    drawn = await sheet(request, viewer, template, shown)
    return _plain(drawn.body, status)


def part(template: str, values: Mapping[str, Any]) -> Response:
    """Return a part of a page, which a script inserts."""
    return _plain(draw(template, values).encode())


def _plain(body: bytes, status: HTTPStatus = HTTPStatus.OK) -> Response:
    """Return it uncached and uncompressed: a compressed length would help to guess the stamp."""
    headers = {**SECURITY, "Cache-Control": "no-store", "Vary": "Cookie"}
    return Response(body, status, headers, media_type="text/html; charset=utf-8")


def go(path: str, done: str = "") -> RedirectResponse:
    """Redirect to a page after an action, so that a reload does not repeat it."""
    there = f"{path}?done={done}" if done else path
    return RedirectResponse(there, HTTPStatus.SEE_OTHER, {"Cache-Control": "no-store"})
