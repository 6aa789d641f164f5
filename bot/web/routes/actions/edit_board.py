"""`/edit/BOARD`: the settings, guests, next task version and deletion of one's own board.

A board is deleted after its archive was downloaded and its name typed.
"""

import asyncio
import re
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from bot.domain.accounts import Caller, require_creator
from bot.domain.board import Board, show_pins
from bot.domain.errors import UserError
from bot.domain.ids import TaskVersionId
from bot.domain.publication import PublishChange, PublishRequest
from bot.domain.times import show_deadline
from bot.reports.blocks import Report, Text
from bot.reports.tasks import change_report
from bot.services import boards
from bot.services.lookup import own_board, task_of
from bot.services.publishing.publish import named_gpus, possible_gpus, publish, validate_publish
from bot.web.context import WebContext, context_of
from bot.web.publications import hand_in
from bot.web.routes.actions import page
from bot.web.sessions import Act, Browser, Fields, Posted

router = APIRouter(prefix="/edit/{name}")

_GUEST = re.compile(r"[a-z][a-z-]{0,30}:[^\s:\x00-\x1f\x7f-\x9f]{1,100}")


@router.get("")
async def form(request: Request, browser: page.SignedIn, name: str) -> Response:
    """Show everything about the board that can be changed."""
    require_creator(browser.session.caller)
    board = await own_board(context_of(request).store, browser.session.caller, name)
    return await _form(request, browser, board)


@router.post("/settings")
async def configure(request: Request, act: Act, name: str) -> Response:
    """Change only its deadline, its GPU types, or who may see it."""
    board = await _own(request, act.caller, name)
    door, fields = context_of(request), act.fields
    try:
        deadline = _deadline(fields, board)
        _, task = await task_of(door.store, act.caller, board.name)
        wanted = PublishRequest(
            act.caller.person,
            board.name,
            page.gpus_of_form(fields),
            deadline,
            endless=deadline is None,
            as_admin=act.caller.sees_all,
            access=page.access_of(fields, board.access),
            onto=board.task_version,
            pins=page.pins_of(fields),
        )
        _require_gpus(wanted)
        published = await publish(door.store, door.clock, wanted, task)
    except UserError as error:
        return await _form(request, act.browser, board, fault=error)
    changed = published.change is not PublishChange.UNCHANGED
    return page.go(_address(board), "changed" if changed else "unchanged")


def _require_gpus(wanted: PublishRequest) -> None:
    if not wanted.gpus:
        raise UserError("no-gpu", "tick or write at least one GPU type")


def _deadline(fields: Fields, board: Board) -> datetime | None:
    """Return the entered deadline; an unchanged one keeps its seconds."""
    same = fields.text("deadline") == _shown(board.deadline)
    return board.deadline if same else page.deadline_of(fields)


@router.post("/invite")
async def let_in(request: Request, act: Act, name: str) -> Response:
    """Let people and roles see a private board."""
    board = await _own(request, act.caller, name)
    guests = frozenset(act.fields.text("guests").replace(",", " ").split())
    try:
        for guest in guests:
            _require_guest(guest)
        await boards.invite(
            context_of(request).store, act.caller, boards.Invitation(board.name, guests)
        )
    except UserError as error:
        return await _form(request, act.browser, board, fault=error)
    return page.go(_address(board), "invited")


def _require_guest(guest: str) -> None:
    if not _GUEST.fullmatch(guest):
        words = "write accounts such as discord:17 or local:ada, roles as discord-role:5"
        raise UserError("bad-guest", f"{guest!r} is nobody who can be invited; {words}")


@router.post("/uninvite")
async def let_out(request: Request, act: Act, name: str) -> Response:
    """Remove guests; they lose the board at once but keep their own submissions."""
    board = await _own(request, act.caller, name)
    guests = frozenset(act.fields.texts("guest"))
    await boards.uninvite(
        context_of(request).store, act.caller, boards.Invitation(board.name, guests)
    )
    return page.go(_address(board), "uninvited")


@router.post("/look")
async def look(request: Request, act: page.FromCreator, name: str) -> Response:
    """Show what the next version would change, or the errors in its zip."""
    board = await _own(request, act.caller, name)
    try:
        upload = await _upload(context_of(request), act, board)
    except UserError as error:
        return page.part("acting/change.html", {"remark": error.message, "upload": None})
    return page.part(
        "acting/change.html", await _seen(context_of(request), act.caller, board, upload)
    )


@router.post("/task")
async def update(request: Request, act: page.FromCreator, name: str) -> Response:
    """Submit the next version; its changes must have been shown first."""
    board = await _own(request, act.caller, name)
    door = context_of(request)
    try:
        upload = await _upload(door, act, board)
        if act.fields.text("onto") != str(board.task_version):
            seen = await _seen(door, act.caller, board, upload)
            return await _form(request, act.browser, board, **seen, again=True)
        await _require_change(door, act.caller, board, upload)
        number = await hand_in(door, upload.request, upload.zip)
    except UserError as error:
        return await _form(request, act.browser, board, fault=error)
    return page.go(f"/create/checks/{number}")


async def _upload(door: WebContext, act: Posted, board: Board) -> page.ShownUpload:
    request = PublishRequest(
        act.caller.person,
        board.name,
        as_admin=act.caller.sees_all,
        onto=TaskVersionId(board.task_version),
    )
    upload = await page.upload_of(act.fields, request)
    await validate_publish(door.store, door.clock, upload.request, upload.task)
    return upload


async def _seen(
    door: WebContext, caller: Caller, board: Board, upload: page.ShownUpload
) -> dict[str, Any]:
    change = await _change(door, caller, board, upload)
    same = _is_nothing(change)
    return {
        "remark": "",
        "upload": upload,
        "change": change,
        "same": same,
        "onto": board.task_version,
    }


async def _change(
    door: WebContext, caller: Caller, board: Board, upload: page.ShownUpload
) -> Report:
    _, before = await task_of(door.store, caller, board.name)
    gpus = named_gpus(upload.request, upload.task, board)

    def compared() -> Report:
        return change_report(board, before, upload.task, gpus=gpus, deadline=board.deadline)

    return await asyncio.to_thread(compared)


def _is_nothing(change: Report) -> bool:
    return len(change.blocks) == 1 and isinstance(change.blocks[0], Text)


async def _require_change(
    door: WebContext, caller: Caller, board: Board, upload: page.ShownUpload
) -> None:
    if _is_nothing(await _change(door, caller, board, upload)):
        raise UserError("nothing", "the task of this zip is the one that the board has already")


async def _own(request: Request, caller: Caller, name: str) -> Board:
    require_creator(caller)
    return await own_board(context_of(request).store, caller, name)


def _address(board: Board) -> str:
    return f"/edit/{board.name}"


def _shown(deadline: datetime | None) -> str:
    return "" if deadline is None else show_deadline(deadline)


async def _form(
    request: Request,
    browser: Browser,
    board: Board,
    fault: UserError | None = None,
    **more: object,
) -> Response:
    door = context_of(request)
    _, task = await task_of(door.store, browser.session.caller, board.name)
    possible = await possible_gpus(door.store, door.runners, task)
    values = {
        "title": f"Edit {board.name}",
        "board": board,
        "task": task,
        "gpus": sorted({*possible, *board.gpus}),
        "deadline": _shown(board.deadline),
        "pools": show_pins(board.pins),
        "upload": None,
        "remark": "",
        "again": False,
        **more,
    }
    return await page.show(request, browser, "acting/edit.html", values, fault=fault)


PART_BYTES = 64 << 20
"""The largest zip of a board archive."""
_LONGEST_REASON = 300


@router.get("/delete")
async def confirm(request: Request, browser: page.SignedIn, name: str) -> Response:
    """Show what will be deleted, what can be saved, and the form for the exact name."""
    require_creator(browser.session.caller)
    board = await own_board(context_of(request).store, browser.session.caller, name)
    return await _deletion_form(request, browser, board)


@router.get("/keepsake")
async def hand_out(
    request: Request,
    browser: page.SignedIn,
    name: str,
    part: Annotated[int, Query(ge=1, le=10_000)] = 1,
) -> Response:
    """Return the board's task versions and all sources, as a zip."""
    caller = browser.session.caller
    require_creator(caller)
    kept = await boards.board_archive(
        context_of(request).store, caller, boards.Deletion(name, name), zip_bytes=PART_BYTES
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
    deletion = boards.Deletion(
        board.name, fields.text("typed"), fields.text("reason")[:_LONGEST_REASON]
    )
    try:
        _require_saved(fields)
        kept = await boards.board_archive(store, act.caller, deletion, zip_bytes=PART_BYTES)
        _require_told(fields, kept)
        await boards.delete_board(store, act.caller, deletion, kept)
    except UserError as error:
        return await _deletion_form(request, act.browser, board, fault=error)
    return page.go("/create", "deleted")


def _require_saved(fields: Fields) -> None:
    if fields.text("saved") != "yes":
        raise UserError("not-saved", "say that you have saved the sources, or need none")


def _require_told(fields: Fields, kept: boards.BoardArchive) -> None:
    if fields.text("told") != _state(kept.board, kept.submissions):
        words = "the board has moved on since this page was opened; download it once more"
        raise UserError("board-moved", words)


def _state(board: Board, submissions: int) -> str:
    """Return a digest that changes when the board changes."""
    return f"{board.id} {board.task_version} {submissions}"


async def _deletion_form(
    request: Request, browser: Browser, board: Board, fault: UserError | None = None
) -> Response:
    count = len(await context_of(request).store.submissions.to(board.id))
    values = {
        "title": f"Delete {board.name}",
        "board": board,
        "count": count,
        "told_state": _state(board, count),
    }
    return await page.show(request, browser, "acting/delete.html", values, fault=fault)
