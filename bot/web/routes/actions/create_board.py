"""`/create`: a board from a task zip, whose own solutions are run before it opens."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response

from bot.domain.accounts import require_creator
from bot.domain.board import Access, Board, SourceVisibility, Visibility
from bot.domain.errors import UserError
from bot.domain.publication import PublishChange, PublishRequest
from bot.services.lookup import visible_board, visible_boards
from bot.services.publishing.publish import NO_BOARD, possible_gpus, validate_publish
from bot.services.submissions import best_of, rejudge_from
from bot.web.context import DOOR, WebContext, context_of
from bot.web.publications import Check, hand_in, own_check
from bot.web.rendering import Part, draw, live
from bot.web.routes.actions import page
from bot.web.sessions import Act, Browser, Fields, Posted, still_signed_in
from runners.contract.gpus import gpu_types

router = APIRouter(prefix="/create")

_Number = Annotated[int, Path(ge=1, le=2**53)]


@router.get("")
async def form(request: Request, browser: page.SignedIn) -> Response:
    """Show the form of a new board, one's own boards, and the checks of the last month."""
    require_creator(browser.session.caller)
    return await _form(request, browser, {})


@router.post("/look")
async def look(request: Request, act: page.FromCreator) -> Response:
    """Show the zip's contents or errors, and the GPU types for it."""
    try:
        upload = await page.upload_of(act.fields, PublishRequest(act.caller.person))
    except UserError as error:
        return page.part("acting/found.html", {"remark": error.message, "found": None, "gpus": ()})
    return page.part("acting/found.html", await _seen(context_of(request), upload, act.fields))


@router.post("")
async def create(request: Request, act: page.FromCreator) -> Response:
    """Submit the zip to be checked; show the form again if something is wrong with it."""
    door, fields = context_of(request), act.fields
    try:
        upload = await _upload(door, act)
        number = await hand_in(door, upload.request, upload.zip)
    except UserError as error:
        return await _form(request, act.browser, _written(fields), fault=error)
    return page.go(f"/create/checks/{number}")


async def _upload(door: WebContext, act: Posted) -> page.ShownUpload:
    fields = act.fields
    name = fields.text("name")
    if await door.store.boards.find(name) is not None:
        raise UserError("board-exists", f"there is a board {name!r}; choose another name")
    request = PublishRequest(
        act.caller.person,
        name,
        page.gpus_of_form(fields),
        page.deadline_of(fields),
        access=page.access_of(fields, Access()),
        onto=NO_BOARD,
        pins=page.pins_of(fields),
    )
    upload = await page.upload_of(fields, request)
    if not (request.gpus or upload.task.gpus):
        offered = await possible_gpus(door.store, door.runners, upload.task)
        words = ", ".join(offered) or "start a worker, or write them, such as H100"
        raise UserError("no-gpu", f"choose the board's GPU types: {words}")
    await validate_publish(door.store, door.clock, upload.request, upload.task)
    return upload


async def _seen(door: WebContext, upload: page.ShownUpload, fields: Fields) -> dict[str, Any]:
    gpus = await possible_gpus(door.store, door.runners, upload.task)
    wanted = set(page.gpus_of_form(fields) or gpu_types(upload.task.gpus))
    if len(gpus) == 1:
        wanted |= set(gpus)
    return {
        "remark": "",
        "found": upload.found,
        "gpus": gpus,
        "chosen": wanted & set(gpus),
        "task": upload.task,
    }


def _written(fields: Fields) -> dict[str, Any]:
    names = ("name", "deadline", "visibility", "sources", "other_gpus", "pools")
    written = {name: fields.text(name) for name in names if fields.text(name)}
    ticked = " ".join(page.gpus_of_form(fields))
    return written | ({"other_gpus": ticked} if ticked else {})


async def _form(
    request: Request, browser: Browser, written: dict[str, Any], fault: UserError | None = None
) -> Response:
    store, caller = context_of(request).store, browser.session.caller
    checks = [Check.of(each) for each in await store.publications.summaries_of(DOOR, caller.person)]
    values = {
        "title": "Create a leaderboard",
        "name": "",
        "deadline": "",
        "visibility": Visibility.PUBLIC.value,
        "sources": SourceVisibility.AFTER_DEADLINE.value,
        "other_gpus": "",
        "pools": "",
        "checks": checks[:20],
        "own": [each for each in await visible_boards(store, caller) if each.belongs_to(caller)],
        **written,
    }
    return await page.show(request, browser, "acting/create.html", values, fault=fault)


@router.get("/checks/{number}")
async def check(request: Request, browser: page.SignedIn, number: _Number) -> Response:
    """Show a check's progress and outcome; updates itself."""
    door = context_of(request)
    found = await own_check(door, browser.session.caller, number)
    drawn = await _drawn(door, browser, found)
    values = {"title": f"Check of {found.name}", "check": found, "part": drawn}
    return await page.show(request, browser, "acting/check.html", values)


@router.get("/checks/{number}/events")
async def events(request: Request, browser: page.SignedIn, number: _Number) -> Response:
    """Stream the changing part of that page."""
    door, caller = context_of(request), browser.session.caller
    await own_check(door, caller, number)

    async def moving() -> Part:
        found = await own_check(door, caller, number)
        return await _drawn(door, browser, found), found.outcome is not None

    return live(door, moving, lambda: still_signed_in(request, browser))


async def _drawn(door: WebContext, browser: Browser, check: Check) -> str:
    outcome = check.outcome
    board: Board | None = None
    standing = 0
    if outcome is not None and outcome.board is not None:
        board = await door.store.boards.get(outcome.board)
        if board is not None and outcome.change is PublishChange.NEW_VERSION:
            versions = await door.store.boards.versions(board.id)
            earlier = [each.id for each in versions if each.number == outcome.before]
            standing = len(await best_of(door.store, board, earlier[0])) if earlier else 0
    values = {"check": check, "board": board, "standing": standing, "stamp": browser.stamp}
    return draw("acting/check_live.html", values)


@router.post("/checks/{number}/rejudge")
async def rejudge(request: Request, act: Act, number: _Number) -> Response:
    """Judge everyone's best submission to the previous version by the new one."""
    require_creator(act.caller)
    door = context_of(request)
    outcome = (await own_check(door, act.caller, number)).outcome
    if outcome is None or outcome.board is None:
        raise UserError("no-version", "nothing was published by this check")
    board = await visible_board(door.store, act.caller, outcome.board)
    await rejudge_from(door.store, act.caller, board, outcome.before)
    return page.go(f"/edit/{board.name}", "rejudging")
