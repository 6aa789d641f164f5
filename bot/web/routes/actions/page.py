"""Shared by the pages with forms: the signed-in browser, messages after actions, form fields."""

import asyncio
import base64
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import PurePath
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Depends, Path, Query, Request, Response
from fastapi.responses import RedirectResponse
from starlette.exceptions import HTTPException

from bot.domain import board
from bot.domain.accounts import ANYBODY, Caller, require_creator
from bot.domain.errors import UserError
from bot.domain.publication import PublishRequest
from bot.domain.tasks.bundle import MAX_PACKED
from bot.domain.times import parse_deadline, show_deadline
from bot.ports import Store
from bot.reports import blocks, tasks
from bot.services.publishing.pipeline import under_chosen_grader
from bot.services.publishing.publish import TaskUpload, read_upload
from bot.web import errors, publications, rendering, sessions
from bot.web.context import WebContext, page_of
from bot.web.moderation import DONE_MESSAGES
from runners.contract.gpus import gpu_types
from runners.contract.task import Grader

_DONE_MESSAGES = {
    **DONE_MESSAGES,
    "changed": "Your changes are saved.",
    "unchanged": "Nothing has changed.",
    "invited": "The invited people and roles can see the board.",
    "uninvited": "The removed people and roles can no longer see the board.",
    "link-revoked": "The invite link no longer works; people who joined by it stay invited.",
    "deleted": "The board and everything on it are deleted.",
    "competition-ended": "The competition is deleted.",
    "closed": "The competition is closed.",
    "renamed": "Your display name is changed.",
    "revoked": "The token is revoked; programs that use it are refused.",
    "ended": "Those browsers are signed out.",
    "notices": "Your notification settings are saved.",
    "paused": "The pause has begun.",
    "resumed": "The pause has ended.",
    "limited": "The limit applies from now on.",
    "unlimited": "The limit is removed.",
    "final": "The final has begun. Its progress is below and on the board's page.",
    "final-cancelled": "The final is cancelled; the standings stay as they are.",
}
"""Messages by the value of `done` in the address, so that an address cannot inject text."""


async def signed_in(request: Request) -> sessions.Browser:
    """Return the signed-in browser; others are sent to the sign-in page."""
    browser = await sessions.browser_of(request)
    if browser is None:
        location = f"/sign-in?next={quote(page_of(request), safe='')}"
        raise HTTPException(HTTPStatus.SEE_OTHER, headers={"Location": location})
    return browser


SignedIn = Annotated[sessions.Browser, Depends(signed_in)]
Number = Annotated[int, Path(ge=1, le=2**53)]


async def show(
    request: Request,
    browser: sessions.Browser | None,
    template: str,
    values: Mapping[str, Any],
    *,
    fault: UserError | None = None,
) -> Response:
    """Return an uncacheable page; with a fault, it has its message and status."""
    viewer = ANYBODY if browser is None else browser.session.caller
    shown = {
        "stamp": "" if browser is None else browser.stamp,
        "fault": "" if fault is None else fault.message,
        "done": _DONE_MESSAGES.get(request.query_params.get("done", ""), ""),
        "is_admin": viewer.sees_all,
        "kept_name": "",
        "kept_data": "",
        **values,
    }
    status = HTTPStatus.OK if fault is None else errors.status_of(fault.code)
    rendered = await rendering.render_page(request, viewer, template, shown)
    return _plain(rendered.body, status)


def part(template: str, values: Mapping[str, Any]) -> Response:
    """Return a part of a page, which a script inserts."""
    return _plain(rendering.render(template, values).encode())


def _plain(body: bytes, status: HTTPStatus = HTTPStatus.OK) -> Response:
    """Return a page uncached and uncompressed: the length of a compressed one reveals the stamp."""
    headers = {**rendering.SECURITY, "Cache-Control": "no-store", "Vary": "Cookie"}
    return Response(body, status, headers, media_type="text/html; charset=utf-8")


def redirect(path: str, done: str = "") -> RedirectResponse:
    """Redirect to a page after an action, so that a reload does not repeat it."""
    location = f"{path}?done={done}" if done else path
    return RedirectResponse(location, HTTPStatus.SEE_OTHER, {"Cache-Control": "no-store"})


def quoted(*parts: str) -> str:
    """Return the path of these parts, whatever characters they have."""
    return "".join(f"/{quote(each, safe='')}" for each in parts)


CreatorForm = Annotated[
    sessions.SubmittedForm,
    Depends(sessions.submitted_form(sessions.MOST_WITH_KEPT_ZIP, require_creator)),
]
"""A form with a zip from a board creator; other people's forms are not read."""


@dataclass(frozen=True, slots=True)
class ShownUpload(TaskUpload):
    """An upload with a report of the zip's contents."""

    found: blocks.Report


async def upload_of(
    store: Store,
    fields: sessions.Fields,
    request: PublishRequest,
    present: board.Board | None = None,
) -> ShownUpload:
    """Return the task of a form's zip, for the board `present` or a new one.

    UserError with file and line when it is invalid.
    """
    file = await zip_of(fields, "task_zip")
    if file is None:
        raise UserError("no-zip", "choose a task zip, as `podium task pack DIR` makes it")
    request = replace(request, zip_name=PurePath(file.name.replace("\\", "/")).stem[:100])
    bundle, parsed = await read_upload(file.content, request)
    parsed = await under_chosen_grader(store, present, parsed, request.grader)
    found = await asyncio.to_thread(tasks.upload_report, bundle, parsed)
    return ShownUpload(request, file.content, parsed.task, found)


async def zip_of(fields: sessions.Fields, name: str) -> sessions.File | None:
    """Return the uploaded zip; UserError when it is too long."""
    file = await fields.file(name)
    if file is not None and len(file.content) > MAX_PACKED:
        message = f"the zip is too long; at most {MAX_PACKED} bytes are allowed"
        raise UserError("large-body", message)
    return file


async def kept_zip(fields: sessions.Fields, name: str) -> dict[str, str]:
    """Return the uploaded zip for the form that is shown again, so that it is chosen only once."""
    file = await fields.file(name)
    if file is None or len(file.content) > MAX_PACKED:
        return {}
    return {"kept_name": file.name, "kept_data": base64.b64encode(file.content).decode()}


KeptCheck = Annotated[int | None, Query(alias="check", ge=1, le=2**53)]
"""A check that published nothing, whose zip and settings a form begins with."""


async def upload_of_check(
    context: WebContext, caller: Caller, check: int | None
) -> tuple[PublishRequest | None, dict[str, str]]:
    """Return the settings and the zip with which a form begins; none without a check."""
    if check is None:
        return None, {}
    request, data = await publications.checks_of(context).kept_upload(caller, check)
    name = f"{request.zip_name or request.name or 'task'}.zip"
    return request, {"kept_name": name, "kept_data": base64.b64encode(data).decode()}


def gpus_of_form(fields: sessions.Fields) -> tuple[str, ...]:
    """Return the GPU types that were ticked or typed."""
    typed = fields.text("other_gpus").replace(",", " ").split()
    return gpu_types((*fields.texts("gpu"), *typed))


def pins_of(fields: sessions.Fields) -> board.Pins:
    """Return the pools that were typed; any pool may time the GPU types that are not named."""
    return ((board.ALL, board.ANY), *board.parse_pins((fields.text("pools"),)))


def typed_date(moment: datetime | None) -> str:
    """Return a date as it is typed into a form; empty without one."""
    return "" if moment is None else show_deadline(moment.astimezone(UTC))


def deadline_of(fields: sessions.Fields) -> datetime | None:
    """Return the deadline that was typed; None when there is none."""
    text = fields.text("deadline")
    return parse_deadline(text) if text else None


def grader_of(fields: sessions.Fields) -> Grader | None:
    """Return the chosen grader; None leaves it to task.yml and to the check."""
    grader = fields.text("grader")
    return Grader(grader) if grader in set(Grader) else None


def access_of(fields: sessions.Fields, present: board.Access) -> board.Access:
    """Return who may see the board and its sources; the rest of `present` is kept."""
    visibility, source = fields.text("visibility"), fields.text("sources")
    return replace(
        present,
        visibility=board.Visibility(visibility)
        if visibility in set(board.Visibility)
        else present.visibility,
        source=board.SourceVisibility(source)
        if source in set(board.SourceVisibility)
        else present.source,
    )
