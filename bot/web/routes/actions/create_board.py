"""`/create`: creates a board from a task zip; the task's solutions are run before it opens."""

from typing import Any

from fastapi import APIRouter, Request, Response

from bot.domain.accounts import require_creator
from bot.domain.board import (
    ALL,
    ANY,
    Access,
    Board,
    SourceVisibility,
    Visibility,
    show_pins,
)
from bot.domain.errors import UserError
from bot.domain.publication import PublishChange, PublishRequest
from bot.services import lookup, submissions
from bot.services.publishing.own_checks import Check
from bot.services.publishing.publish import NO_BOARD, possible_gpus, validate_publish
from bot.web import publications, rendering, sessions
from bot.web.context import WebContext, context_of
from bot.web.routes.actions import page
from runners.contract.gpus import gpu_types

router = APIRouter(prefix="/create")


@router.get("")
async def form(request: Request, browser: page.SignedIn, check: page.KeptCheck = None) -> Response:
    """Show the form of a new board, the person's own boards, and their checks of the last month."""
    require_creator(browser.session.caller)
    wanted, kept = await page.upload_of_check(context_of(request), browser.session.caller, check)
    return await _form(request, browser, kept | ({} if wanted is None else _settings(wanted)))


@router.post("/look")
async def preview(request: Request, submitted: page.CreatorForm) -> Response:
    """Show the zip's contents or errors, and the GPU types for it."""
    try:
        grader = page.grader_of(submitted.fields)
        wanted = PublishRequest(submitted.caller.person, grader=grader)
        upload = await page.upload_of(context_of(request).store, submitted.fields, wanted)
    except UserError as error:
        return page.part("actions/found.html", {"remark": error.message, "found": None, "gpus": ()})
    return page.part(
        "actions/found.html", await _preview_values(context_of(request), upload, submitted.fields)
    )


@router.post("")
async def create(request: Request, submitted: page.CreatorForm) -> Response:
    """Submit the zip to be checked; show the form again if something is wrong with it."""
    context, fields = context_of(request), submitted.fields
    try:
        upload = await _upload(context, submitted)
        number = await publications.checks_of(context).submit(upload.request, upload.zip)
    except UserError as error:
        typed = _typed(fields) | await page.kept_zip(fields, "task_zip")
        return await _form(request, submitted.browser, typed, fault=error)
    return page.redirect(f"/create/checks/{number}")


async def _upload(context: WebContext, submitted: sessions.SubmittedForm) -> page.ShownUpload:
    fields = submitted.fields
    name = fields.text("name")
    if await context.store.boards.find(name) is not None:
        raise UserError("board-exists", f"there is a board {name!r}; choose another name")
    request = PublishRequest(
        submitted.caller.person,
        name,
        page.gpus_of_form(fields),
        page.deadline_of(fields),
        access=page.access_of(fields, Access()),
        onto=NO_BOARD,
        pins=page.pins_of(fields),
        grader=page.grader_of(fields),
    )
    upload = await page.upload_of(context.store, fields, request)
    if not (request.gpus or upload.task.gpus):
        offered = await possible_gpus(context.store, upload.task)
        gpu_names = ", ".join(offered) or "no worker offers any, so write them, such as H100"
        raise UserError("no-gpu", f"choose the board's GPU types: {gpu_names}")
    await validate_publish(context.store, context.clock, upload.request, upload.task)
    return upload


async def _preview_values(
    context: WebContext, upload: page.ShownUpload, fields: sessions.Fields
) -> dict[str, Any]:
    gpus = await possible_gpus(context.store, upload.task)
    chosen = set(page.gpus_of_form(fields) or gpu_types(upload.task.gpus))
    if len(gpus) == 1:
        chosen |= set(gpus)
    return {
        "remark": "",
        "found": upload.found,
        "gpus": gpus,
        "chosen": chosen & set(gpus),
        "task": upload.task,
    }


def _settings(wanted: PublishRequest) -> dict[str, Any]:
    """Return the settings of a check as values of the form's fields."""
    access = wanted.access or Access()
    return {
        "name": wanted.name or "",
        "deadline": page.typed_date(wanted.deadline),
        "visibility": access.visibility.value,
        "sources": access.source.value,
        "other_gpus": ", ".join(wanted.gpus),
        "pools": show_pins(tuple(each for each in wanted.pins if each != (ALL, ANY))),
        "grader": wanted.grader or "",
    }


def _typed(fields: sessions.Fields) -> dict[str, Any]:
    names = ("name", "deadline", "visibility", "sources", "other_gpus", "pools", "grader")
    typed = {name: fields.text(name) for name in names if fields.text(name)}
    ticked = " ".join(page.gpus_of_form(fields))
    return typed | ({"other_gpus": ticked} if ticked else {})


async def _form(
    request: Request,
    browser: sessions.Browser,
    typed: dict[str, Any],
    fault: UserError | None = None,
) -> Response:
    store, caller = context_of(request).store, browser.session.caller
    checks = await publications.checks_of(context_of(request)).of(caller.person)
    values = {
        "title": "Create a board",
        "name": "",
        "deadline": "",
        "visibility": Visibility.PUBLIC.value,
        "sources": SourceVisibility.AFTER_DEADLINE.value,
        "other_gpus": "",
        "pools": "",
        "grader": "",
        "checks": checks[:20],
        "own": [
            each for each in await lookup.visible_boards(store, caller) if each.belongs_to(caller)
        ],
        **typed,
    }
    return await page.show(request, browser, "actions/create.html", values, fault=fault)


@router.get("/checks/{number}")
async def check(request: Request, browser: page.SignedIn, number: page.Number) -> Response:
    """Show a check's progress and outcome; updates itself."""
    context = context_of(request)
    found = await publications.checks_of(context).get(browser.session.caller, number)
    part = await _render_check(context, browser, found)
    values = {"title": f"Check of {found.name}", "check": found, "part": part}
    return await page.show(request, browser, "actions/check.html", values)


@router.get("/checks/{number}/events")
async def events(request: Request, browser: page.SignedIn, number: page.Number) -> Response:
    """Stream the changing part of that page."""
    context, caller = context_of(request), browser.session.caller
    await publications.checks_of(context).get(caller, number)

    async def part() -> rendering.Part:
        found = await publications.checks_of(context).get(caller, number)
        return await _render_check(context, browser, found), found.outcome is not None

    return rendering.live(context, part, lambda: sessions.still_signed_in(request, browser))


async def _render_check(context: WebContext, browser: sessions.Browser, check: Check) -> str:
    outcome = check.outcome
    board: Board | None = None
    count = 0
    if outcome is not None and outcome.board is not None:
        board = await context.store.boards.get(outcome.board)
        if board is not None and outcome.change is PublishChange.NEW_VERSION:
            versions = await context.store.boards.versions(board.id)
            earlier = [each.id for each in versions if each.number == outcome.before]
            if earlier:
                count = len(await submissions.best_of(context.store, board, earlier[0]))
    values = {
        "check": check,
        "steps": publications.steps_of(check),
        "remarks": publications.remarks_of(check),
        "board": board,
        "rejudgeable": count,
        "stamp": browser.stamp,
        "again": await _upload_page(context, check),
    }
    return rendering.render("actions/check_live.html", values)


@router.post("/checks/{number}/cancel")
async def cancel(request: Request, submitted: sessions.SmallForm, number: page.Number) -> Response:
    """Cancel a check before anything is published."""
    await publications.checks_of(context_of(request)).cancel(submitted.caller, number)
    return page.redirect(f"/create/checks/{number}")


async def _upload_page(context: WebContext, check: Check) -> str:
    """Return the address of the form for another check, with this check's zip if it is kept."""
    kept = f"?check={check.id}" if check.has_zip else ""
    if check.is_competition:
        return f"/create/competition{kept}"
    exists = await context.store.boards.find(check.name) is not None
    is_create = not exists or (check.is_new and check.has_zip)
    return f"/create{kept}" if is_create else f"/edit/{check.name}{kept}"


@router.post("/checks/{number}/grader")
async def choose_grader(
    request: Request, submitted: sessions.SmallForm, number: page.Number
) -> Response:
    """Check the zip again, under the grader that its submitter chose after the check."""
    require_creator(submitted.caller)
    grader = page.grader_of(submitted.fields)
    if grader is None:
        raise UserError("no-grader", "choose one of the two graders")
    context = context_of(request)
    again = await publications.checks_of(context).choose_grader(submitted.caller, number, grader)
    return page.redirect(f"/create/checks/{again}")


@router.post("/checks/{number}/rejudge")
async def rejudge(request: Request, submitted: sessions.SmallForm, number: page.Number) -> Response:
    """Judge everyone's best submission to the previous version by the new one."""
    require_creator(submitted.caller)
    context = context_of(request)
    outcome = (await publications.checks_of(context).get(submitted.caller, number)).outcome
    if outcome is None or outcome.board is None:
        raise UserError("no-version", "nothing was published by this check")
    board = await lookup.visible_board(context.store, submitted.caller, outcome.board)
    await submissions.rejudge_from(context.store, submitted.caller, board, outcome.before)
    return page.redirect(f"/edit/{board.name}", "rejudging")
