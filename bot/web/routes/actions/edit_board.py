"""`/edit/BOARD`: the settings, guests, next task version and deletion of a person's own board.

To delete a board, its creator must type its name, and confirm that they have saved its sources.
"""

import asyncio
import re
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from bot.domain.accounts import Caller, require_creator
from bot.domain.board import Board, show_pins
from bot.domain.errors import UserError
from bot.domain.publication import PublishChange, PublishRequest
from bot.reports import blocks, tasks
from bot.services import boards, invites, lookup
from bot.services.publishing.publish import named_gpus, possible_gpus, publish, validate_publish
from bot.web import publications, sessions
from bot.web.context import ARCHIVE_ZIP_BYTES, WebContext, address_of, context_of
from bot.web.routes.actions import page

router = APIRouter(prefix="/edit/{name}")

_GUEST = re.compile(r"[a-z][a-z-]{0,30}:[^\s:\x00-\x1f\x7f-\x9f]{1,100}")


@router.get("")
async def form(
    request: Request, browser: page.SignedIn, name: str, check: page.KeptCheck = None
) -> Response:
    """Show the forms for everything about the board that can be changed."""
    board = await _own_board(request, browser.session.caller, name)
    wanted, kept = await page.upload_of_check(context_of(request), browser.session.caller, check)
    more: dict[str, Any] = {**kept, "grader": (wanted and wanted.grader) or ""}
    return await _form(request, browser, board, **more)


@router.post("/settings")
async def configure(request: Request, submitted: sessions.SmallForm, name: str) -> Response:
    """Change its deadline, its GPU types, its pools, or who may see it and its sources."""
    board = await _own_board(request, submitted.caller, name)
    context, fields = context_of(request), submitted.fields
    try:
        deadline = _deadline(fields, board)
        _, task = await lookup.task_of(context.store, submitted.caller, board.name)
        publish_request = PublishRequest(
            submitted.caller.person,
            board.name,
            page.gpus_of_form(fields),
            deadline,
            endless=deadline is None,
            as_admin=submitted.caller.sees_all,
            access=page.access_of(fields, board.access),
            onto=board.task_version,
            pins=page.pins_of(fields),
        )
        _require_gpus(publish_request)
        published = await publish(context.store, context.clock, publish_request, task)
    except UserError as error:
        return await _form(request, submitted.browser, board, fault=error)
    changed = published.change is not PublishChange.UNCHANGED
    return page.redirect(_address(board), "changed" if changed else "unchanged")


def _require_gpus(wanted: PublishRequest) -> None:
    if not wanted.gpus:
        raise UserError("no-gpu", "tick or write at least one GPU type")


def _deadline(fields: sessions.Fields, board: Board) -> datetime | None:
    """Return the entered deadline; an unchanged one keeps its seconds."""
    same = fields.text("deadline") == page.typed_date(board.deadline)
    return board.deadline if same else page.deadline_of(fields)


@router.post("/invite")
async def invite(request: Request, submitted: sessions.SmallForm, name: str) -> Response:
    """Let people and roles see a private board."""
    board = await _own_board(request, submitted.caller, name)
    guests = frozenset(submitted.fields.text("guests").replace(",", " ").split())
    try:
        for guest in guests:
            _require_guest(guest)
        await boards.invite(
            context_of(request).store, submitted.caller, boards.Invitation(board.name, guests)
        )
    except UserError as error:
        return await _form(request, submitted.browser, board, fault=error)
    return page.redirect(_address(board), "invited")


def _require_guest(guest: str) -> None:
    if not _GUEST.fullmatch(guest):
        hint = "write accounts such as discord:17 or local:ada, roles as discord-role:5"
        raise UserError("bad-guest", f"{guest!r} cannot be invited; {hint}")


@router.post("/uninvite")
async def uninvite(request: Request, submitted: sessions.SmallForm, name: str) -> Response:
    """Remove guests; they lose the board at once but keep their own submissions."""
    board = await _own_board(request, submitted.caller, name)
    guests = frozenset(submitted.fields.texts("guest"))
    await boards.uninvite(
        context_of(request).store, submitted.caller, boards.Invitation(board.name, guests)
    )
    return page.redirect(_address(board), "uninvited")


@router.post("/links")
async def add_link(request: Request, submitted: sessions.SmallForm, name: str) -> Response:
    """Create an invite link and show it once."""
    board = await _own_board(request, submitted.caller, name)
    context, fields = context_of(request), submitted.fields
    days = sessions.parse_number(fields.text("days"), invites.MOST_DAYS) or 0
    most = sessions.parse_number(fields.text("most"), invites.MOST_PEOPLE) or 0
    try:
        link, code = await invites.create_invite_link(
            context.store, context.clock, submitted.caller, board.name, days=days, most=most
        )
    except UserError as error:
        return await _form(request, submitted.browser, board, fault=error)
    made = {"link": link, "code": code, "url": f"{address_of(request)}/join?code={code}"}
    return await _form(request, submitted.browser, board, made=made)


@router.post("/links/{number}/revoke")
async def revoke_link(
    request: Request, submitted: sessions.SmallForm, name: str, number: page.Number
) -> Response:
    """Revoke an invite link; people who joined by it stay invited."""
    board = await _own_board(request, submitted.caller, name)
    store = context_of(request).store
    await invites.revoke_invite_link(store, submitted.caller, board.name, number)
    return page.redirect(_address(board), "link-revoked")


@router.post("/look")
async def preview(request: Request, submitted: page.CreatorForm, name: str) -> Response:
    """Show what the next version would change, or the errors in its zip."""
    board = await _own_board(request, submitted.caller, name)
    try:
        upload = await _upload(context_of(request), submitted, board)
    except UserError as error:
        return page.part("actions/change.html", {"remark": error.message, "upload": None})
    return page.part(
        "actions/change.html",
        await _preview_values(context_of(request), submitted.caller, board, upload),
    )


@router.post("/task")
async def update(request: Request, submitted: page.CreatorForm, name: str) -> Response:
    """Submit the next version; show its changes first if they have not been shown."""
    board = await _own_board(request, submitted.caller, name)
    context = context_of(request)
    try:
        upload = await _upload(context, submitted, board)
        if submitted.fields.text("onto") != str(board.task_version):
            preview_values = await _preview_values(context, submitted.caller, board, upload)
            preview_values |= {"grader": submitted.fields.text("grader"), "again": True}
            preview_values |= await page.kept_zip(submitted.fields, "task_zip")
            return await _form(request, submitted.browser, board, **preview_values)
        await _require_change(context, submitted.caller, board, upload)
        number = await publications.checks_of(context).submit(upload.request, upload.zip)
    except UserError as error:
        kept = await page.kept_zip(submitted.fields, "task_zip")
        return await _form(request, submitted.browser, board, fault=error, **kept)
    return page.redirect(f"/create/checks/{number}")


async def _upload(
    context: WebContext, submitted: sessions.SubmittedForm, board: Board
) -> page.ShownUpload:
    request = PublishRequest(
        submitted.caller.person,
        board.name,
        as_admin=submitted.caller.sees_all,
        onto=board.task_version,
        grader=page.grader_of(submitted.fields),
    )
    upload = await page.upload_of(context.store, submitted.fields, request, board)
    await validate_publish(context.store, context.clock, upload.request, upload.task)
    return upload


async def _preview_values(
    context: WebContext, caller: Caller, board: Board, upload: page.ShownUpload
) -> dict[str, Any]:
    change = await _change(context, caller, board, upload)
    return {
        "remark": "",
        "upload": upload,
        "change": change,
        "same": _is_unchanged(change),
        "onto": board.task_version,
    }


async def _change(
    context: WebContext, caller: Caller, board: Board, upload: page.ShownUpload
) -> blocks.Report:
    _, before = await lookup.task_of(context.store, caller, board.name)
    gpus = named_gpus(upload.request, upload.task, board)
    return await asyncio.to_thread(
        tasks.change_report, board, before, upload.task, gpus=gpus, deadline=board.deadline
    )


def _is_unchanged(change: blocks.Report) -> bool:
    return len(change.blocks) == 1 and isinstance(change.blocks[0], blocks.Text)


async def _require_change(
    context: WebContext, caller: Caller, board: Board, upload: page.ShownUpload
) -> None:
    if _is_unchanged(await _change(context, caller, board, upload)):
        raise UserError("nothing", "this zip has the same task as the board")


async def _own_board(request: Request, caller: Caller, name: str) -> Board:
    require_creator(caller)
    return await lookup.own_board(context_of(request).store, caller, name)


def _address(board: Board) -> str:
    return f"/edit/{board.name}"


async def _form(
    request: Request,
    browser: sessions.Browser,
    board: Board,
    fault: UserError | None = None,
    **more: object,
) -> Response:
    context = context_of(request)
    _, task = await lookup.task_of(context.store, browser.session.caller, board.name)
    possible = await possible_gpus(context.store, task)
    values = {
        "title": f"Edit {board.name}",
        "board": board,
        "task": task,
        "gpus": sorted({*possible, *board.gpus}),
        "deadline": page.typed_date(board.deadline),
        "pools": show_pins(board.pins),
        "grader": "",
        "grader_now": tasks.grader_words(task),
        "upload": None,
        "remark": "",
        "again": False,
        "links": await context.store.invites.of(board.id),
        "made": None,
        **more,
    }
    return await page.show(request, browser, "actions/edit.html", values, fault=fault)


@router.get("/delete")
async def confirm(request: Request, browser: page.SignedIn, name: str) -> Response:
    """Show what will be deleted, a link to the board archive, and the form."""
    board = await _own_board(request, browser.session.caller, name)
    return await _deletion_form(request, browser, board)


@router.get("/keepsake")
async def download_archive(
    request: Request,
    browser: page.SignedIn,
    name: str,
    part: Annotated[int, Query(ge=1, le=10_000)] = 1,
) -> Response:
    """Return the board's task versions and the sources that the person may read, as a zip."""
    caller = browser.session.caller
    require_creator(caller)
    archive = await boards.board_archive(
        context_of(request).store, caller, boards.Deletion(name, name), zip_bytes=ARCHIVE_ZIP_BYTES
    )
    if part > len(archive.zips):
        raise UserError("unknown-part", f"there are {len(archive.zips)} parts")
    is_single = len(archive.zips) == 1
    file = f"{archive.board.name}.zip" if is_single else f"{archive.board.name}-{part}.zip"
    headers = {"Content-Disposition": f'attachment; filename="{file}"', "Cache-Control": "no-store"}
    if not is_single:
        headers["Podium-Parts"] = str(len(archive.zips))
    return Response(archive.zips[part - 1], headers=headers, media_type="application/zip")


@router.post("/delete")
async def delete(request: Request, submitted: sessions.SmallForm, name: str) -> Response:
    """Delete the board, unless it has changed since its page was opened."""
    board = await _own_board(request, submitted.caller, name)
    store, fields = context_of(request).store, submitted.fields
    deletion = boards.Deletion(board.name, fields.text("typed"), fields.reason)
    try:
        _require_saved(fields)
        archive = await boards.board_archive(
            store, submitted.caller, deletion, zip_bytes=ARCHIVE_ZIP_BYTES
        )
        _require_same_state(fields, archive)
        await boards.delete_board(store, submitted.caller, deletion, archive)
    except UserError as error:
        return await _deletion_form(request, submitted.browser, board, fault=error)
    return page.redirect("/create", "deleted")


def _require_saved(fields: sessions.Fields) -> None:
    if fields.text("saved") != "yes":
        raise UserError("not-saved", "confirm that you have saved the sources or do not need them")


def _require_same_state(fields: sessions.Fields, archive: boards.BoardArchive) -> None:
    if fields.text("told") != archive.state:
        message = "the board has changed since this page was opened; download its archive again"
        raise UserError("board-moved", message)


async def _deletion_form(
    request: Request, browser: sessions.Browser, board: Board, fault: UserError | None = None
) -> Response:
    count = len(await context_of(request).store.submissions.to(board.id))
    values = {
        "title": f"Delete {board.name}",
        "board": board,
        "count": count,
        "state": boards.BoardArchive(board, (), count).state,
    }
    return await page.show(request, browser, "actions/delete.html", values, fault=fault)
