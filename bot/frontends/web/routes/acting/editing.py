"""`/edit/BOARD`: a board of one's own: its settings, its guests, its task's next version."""

import asyncio
import re
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response

from bot.domain.board import Board
from bot.domain.deadline import show_deadline
from bot.domain.errors import UserError
from bot.domain.ids import TaskVersionId
from bot.domain.pins import show_pins
from bot.domain.requirements import has_device
from bot.domain.rights import Caller, require_creator
from bot.frontends.web.checks import hand_in
from bot.frontends.web.door import Door, door_of
from bot.frontends.web.forms import Act, Fields, Posted
from bot.frontends.web.routes.acting.creating import creators
from bot.frontends.web.routes.acting.drawing import SignedIn, go, part, show
from bot.frontends.web.routes.acting.zips import (
    Plan,
    access_of,
    deadline_of,
    gpus_of_form,
    pins_of,
    plan_of,
)
from bot.frontends.web.sessions import Browser
from bot.reports.blocks import Report, Text
from bot.reports.task_change import change_report
from bot.services.invite import Invitation, invite, uninvite
from bot.services.lookup import own_board, task_of
from bot.services.offered import offered_gpus
from bot.services.publish import Change, PublishRequest, gpus_of, publish, vet
from bot.services.wishes import Wish

router = APIRouter(prefix="/edit/{name}")

_Upload = Annotated[Posted, Depends(creators)]
_GUEST = re.compile(r"[a-z][a-z-]{0,30}:[^\s:\x00-\x1f\x7f-\x9f]{1,100}")


@router.get("")
async def form(request: Request, browser: SignedIn, name: str) -> Response:
    """Everything about the board that can be changed."""
    require_creator(browser.session.caller)
    board = await own_board(door_of(request).store, browser.session.caller, name)
    return await _form(request, browser, board)


@router.post("/settings")
async def configure(request: Request, act: Act, name: str) -> Response:
    """Its deadline, its GPU types, or who may see it, alone."""
    board = await _own(request, act.caller, name)
    door, fields = door_of(request), act.fields
    try:
        deadline = _deadline(fields, board)
        _, task = await task_of(door.store, act.caller, board.name)
        wanted = PublishRequest(
            act.caller.person,
            task,
            board.name,
            gpus_of_form(fields),
            deadline,
            endless=deadline is None,
            as_admin=act.caller.sees_all,
            access=access_of(fields, board.access),
            onto=board.task_version,
            pins=pins_of(fields),
        )
        _require_gpus(wanted)
        published = await publish(door.store, door.clock, wanted)
    except UserError as error:
        return await _form(request, act.browser, board, fault=error)
    changed = published.change is not Change.UNCHANGED
    return go(_address(board), "changed" if changed else "unchanged")


def _require_gpus(wanted: PublishRequest) -> None:
    if not wanted.gpus:
        raise UserError("no-gpu", "tick or write at least one GPU type")


def _deadline(fields: Fields, board: Board) -> datetime | None:
    """The deadline that was written; one that nobody touched stays to the second."""
    same = fields.text("deadline") == _shown(board.deadline)
    return board.deadline if same else deadline_of(fields)


@router.post("/invite")
async def let_in(request: Request, act: Act, name: str) -> Response:
    """People and roles who may see a private board."""
    board = await _own(request, act.caller, name)
    guests = frozenset(act.fields.text("guests").replace(",", " ").split())
    try:
        for guest in guests:
            _require_guest(guest)
        await invite(door_of(request).store, act.caller, Invitation(board.name, guests))
    except UserError as error:
        return await _form(request, act.browser, board, fault=error)
    return go(_address(board), "invited")


def _require_guest(guest: str) -> None:
    if not _GUEST.fullmatch(guest):
        words = "write accounts such as discord:17 or local:ada, roles as discord-role:5"
        raise UserError("bad-guest", f"{guest!r} is nobody who can be invited; {words}")


@router.post("/uninvite")
async def let_out(request: Request, act: Act, name: str) -> Response:
    """For them the board is gone at once; their own submissions stay theirs."""
    board = await _own(request, act.caller, name)
    guests = frozenset(act.fields.texts("guest"))
    await uninvite(door_of(request).store, act.caller, Invitation(board.name, guests))
    return go(_address(board), "uninvited")


@router.post("/look")
async def look(request: Request, act: _Upload, name: str) -> Response:
    """What the next version would change, or what is wrong with its zip and where."""
    board = await _own(request, act.caller, name)
    try:
        plan = await _plan(door_of(request), act, board)
    except UserError as error:
        return part("acting/change.html", {"remark": error.message, "plan": None})
    return part("acting/change.html", await _seen(door_of(request), act.caller, board, plan))


@router.post("/task")
async def update(request: Request, act: _Upload, name: str) -> Response:
    """Hand the next version in; what it changes must have been seen first."""
    board = await _own(request, act.caller, name)
    door = door_of(request)
    try:
        plan = await _plan(door, act, board)
        if act.fields.text("onto") != str(board.task_version):
            seen = await _seen(door, act.caller, board, plan)
            return await _form(request, act.browser, board, **seen, again=True)
        await _require_change(door, act.caller, board, plan)
        number = await hand_in(door, plan.wish, plan.zip)
    except UserError as error:
        return await _form(request, act.browser, board, fault=error)
    return go(f"/create/checks/{number}")


async def _plan(door: Door, act: Posted, board: Board) -> Plan:
    wish = Wish(
        act.caller.person,
        board.name,
        (),
        None,
        as_admin=act.caller.sees_all,
        onto=TaskVersionId(board.task_version),
    )
    plan = await plan_of(act.fields, wish)
    await vet(door.store, door.clock, plan.request)
    return plan


async def _seen(door: Door, caller: Caller, board: Board, plan: Plan) -> dict[str, Any]:
    change = await _change(door, caller, board, plan)
    same = _is_nothing(change)
    return {"remark": "", "plan": plan, "change": change, "same": same, "onto": board.task_version}


async def _change(door: Door, caller: Caller, board: Board, plan: Plan) -> Report:
    _, before = await task_of(door.store, caller, board.name)
    gpus = gpus_of(plan.request, board)

    def compared() -> Report:
        return change_report(board, before, plan.task, gpus=gpus, deadline=board.deadline)

    return await asyncio.to_thread(compared)


def _is_nothing(change: Report) -> bool:
    return len(change.blocks) == 1 and isinstance(change.blocks[0], Text)


async def _require_change(door: Door, caller: Caller, board: Board, plan: Plan) -> None:
    if _is_nothing(await _change(door, caller, board, plan)):
        raise UserError("nothing", "the task of this zip is the one that the board has already")


async def _own(request: Request, caller: Caller, name: str) -> Board:
    require_creator(caller)
    return await own_board(door_of(request).store, caller, name)


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
    door = door_of(request)
    _, task = await task_of(door.store, browser.session.caller, board.name)
    offered = await offered_gpus(door.store, door.runners) | set(board.gpus)
    values = {
        "title": f"Edit {board.name}",
        "board": board,
        "task": task,
        "gpus": sorted(gpu for gpu in offered if has_device(task, gpu)),
        "deadline": _shown(board.deadline),
        "pools": show_pins(board.pins),
        "plan": None,
        "remark": "",
        "again": False,
        **more,
    }
    return await show(request, browser, "acting/edit.html", values, fault=fault)
