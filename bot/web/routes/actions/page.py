"""What every page with a form has: who is signed in, the form's stamp, and what was done."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import datetime
from http import HTTPStatus
from pathlib import PurePath
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Depends, Request, Response
from fastapi.responses import RedirectResponse
from starlette.exceptions import HTTPException

from bot.domain.accounts import require_creator
from bot.domain.board import (
    ALL,
    ANY,
    NOBODY,
    Access,
    Pins,
    SourceVisibility,
    Viewer,
    Visibility,
    parse_pins,
)
from bot.domain.errors import UserError
from bot.domain.publication import PublishRequest
from bot.domain.tasks.bundle import MAX_PACKED
from bot.domain.times import parse_deadline
from bot.reports.blocks import Report
from bot.reports.tasks import upload_report
from bot.services.publishing.publish import TaskUpload, read_upload
from bot.web.errors import status_of
from bot.web.rendering import SECURITY, draw, sheet
from bot.web.sessions import ROOM, Browser, Fields, Posted, browser_of, posted
from runners.contract.gpus import gpu_types

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


MOST = MAX_PACKED + ROOM
"""The most bytes of a form with a zip."""


async def creators(request: Request) -> AsyncIterator[Posted]:
    """Yield a form with a zip from a board creator; other people's zips are not read."""
    async with aclosing(posted(MOST)(request)) as found:
        async for act in found:
            require_creator(act.caller)
            yield act


FromCreator = Annotated[Posted, Depends(creators)]
"""A form with a zip."""


@dataclass(frozen=True, slots=True)
class ShownUpload(TaskUpload):
    """An upload with a report of the zip's contents."""

    found: Report


async def upload_of(fields: Fields, request: PublishRequest) -> ShownUpload:
    """Return the task of a form's zip; UserError with file and line when it is invalid."""
    file = await fields.file("task_zip")
    if file is None:
        raise UserError("no-zip", "choose a task zip, as `podium task pack DIR` makes it")
    request = replace(request, zip_name=PurePath(file.name.replace("\\", "/")).stem[:100])
    bundle, parsed = await read_upload(file.content, request)
    found = await asyncio.to_thread(upload_report, bundle, parsed)
    return ShownUpload(request, file.content, parsed.task, found)


def gpus_of_form(fields: Fields) -> tuple[str, ...]:
    """Return the GPU types that were ticked or typed."""
    written = fields.text("other_gpus").replace(",", " ").split()
    return gpu_types((*fields.texts("gpu"), *written))


def pins_of(fields: Fields) -> Pins:
    """Return the pools that were typed; every pool may time the others."""
    return ((ALL, ANY), *parse_pins((fields.text("pools"),)))


def deadline_of(fields: Fields) -> datetime | None:
    """Return the deadline that was typed; None when there is none."""
    text = fields.text("deadline")
    return parse_deadline(text) if text else None


def access_of(fields: Fields, present: Access) -> Access:
    """Return who may see the board and its sources; guild and guests stay."""
    visibility, source = fields.text("visibility"), fields.text("sources")
    return replace(
        present,
        visibility=Visibility(visibility) if visibility in set(Visibility) else present.visibility,
        source=SourceVisibility(source) if source in set(SourceVisibility) else present.source,
    )
