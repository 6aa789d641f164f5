"""`/create/competition` and `/competitions/NAME/edit`: publishing, changing, deleting competitions.

To delete one, its creator must type its name. Its boards stay, unless the creator has saved the
archive of each and asks to delete them too.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from fastapi import APIRouter, Request, Response

from bot.domain.accounts import Caller, require_creator
from bot.domain.board import Board, parse_pins, show_pins
from bot.domain.competition import Competition
from bot.domain.errors import UserError
from bot.domain.publication import PublishRequest
from bot.domain.times import parse_deadline, parse_opening
from bot.reports.competition import dates_line, definition_report
from bot.services import competitions
from bot.services.boards import BoardArchive
from bot.services.publishing.pipeline import prepare_competition
from bot.services.publishing.publish import read_competition
from bot.web import publications, sessions
from bot.web.context import WebContext, context_of
from bot.web.routes.actions import page

router = APIRouter()

_NEW = "/create/competition"
_MOST_OWN = 50


@router.get(_NEW)
async def form(request: Request, browser: page.SignedIn, check: page.KeptCheck = None) -> Response:
    """Show the form of a new competition, and those that the person may change."""
    require_creator(browser.session.caller)
    wanted, kept = await page.upload_of_check(context_of(request), browser.session.caller, check)
    typed = {} if wanted is None else {"pools": show_pins(wanted.pins)}
    return await _form(request, browser, kept | typed)


@router.post(f"{_NEW}/look")
async def preview(request: Request, submitted: page.CreatorForm) -> Response:
    """Show the boards in the zip, or what is wrong with it."""
    try:
        publish_request, data = await _upload(context_of(request), submitted)
        report = definition_report(*await read_competition(data, publish_request))
    except UserError as error:
        return page.part("actions/found.html", {"remark": error.message, "found": None})
    return page.part("actions/found.html", {"remark": "", "found": report, "task": None})


@router.post(_NEW)
async def create(request: Request, submitted: page.CreatorForm) -> Response:
    """Submit the zip to be checked; show the form again if something is wrong with it."""
    context = context_of(request)
    try:
        publish_request, data = await _upload(context, submitted)
        number = await publications.checks_of(context).submit(publish_request, data)
    except UserError as error:
        typed = {"pools": submitted.fields.text("pools")}
        typed |= await page.kept_zip(submitted.fields, "competition_zip")
        return await _form(request, submitted.browser, typed, fault=error)
    return page.redirect(f"/create/checks/{number}")


async def _upload(
    context: WebContext, submitted: sessions.SubmittedForm
) -> tuple[PublishRequest, bytes]:
    file = await page.zip_of(submitted.fields, "competition_zip")
    if file is None:
        words = "choose a competition's zip, as `podium task pack season.yaml` makes it"
        raise UserError("no-zip", words)
    caller, pins = submitted.caller, parse_pins((submitted.fields.text("pools"),))
    request = PublishRequest(caller.person, pins=pins, strict=False, competition=True)
    request = await prepare_competition(
        context.store, context.clock, request, file.content, is_admin=caller.sees_all
    )
    return request, file.content


async def _form(
    request: Request,
    browser: sessions.Browser,
    typed: Mapping[str, str] = MappingProxyType({}),
    fault: UserError | None = None,
) -> Response:
    context, caller = context_of(request), browser.session.caller
    known = await competitions.visible_competitions(
        context.store, context.clock, caller, after=None, limit=_MOST_OWN
    )
    now = context.clock.now()
    own = [(each.name, dates_line(each, now)) for each in known if each.belongs_to(caller)]
    values = {"title": "Create a competition", "pools": "", "own": own, **typed}
    return await page.show(request, browser, "actions/create_competition.html", values, fault=fault)


@router.get("/competitions/{name}/edit")
async def edit(request: Request, browser: page.SignedIn, name: str) -> Response:
    """Show the forms for its dates and its deletion."""
    competition = await _own(request, browser.session.caller, name)
    return await _edit_form(request, browser, competition)


@router.post("/competitions/{name}/dates")
async def change_dates(request: Request, submitted: sessions.SmallForm, name: str) -> Response:
    """Change when each of its boards opens and closes."""
    competition = await _own(request, submitted.caller, name)
    context, fields = context_of(request), submitted.fields
    try:
        dates = {each.name: _dates(fields, each) for each in competition.boards}
        await competitions.change_dates(
            context.store, context.clock, submitted.caller, name, dates=dates
        )
    except UserError as error:
        return await _edit_form(request, submitted.browser, competition, fault=error)
    return page.redirect(_address(competition), "changed")


def _dates(fields: sessions.Fields, board: Board) -> competitions.BoardDates:
    """Return the dates that were typed for a board; unchanged ones keep their seconds."""
    opens, deadline = fields.text(f"opens-{board.id}"), fields.text(f"deadline-{board.id}")
    opens_at, closes_at = board.rules.opens_at, board.deadline
    if opens != page.typed_date(opens_at):
        opens_at = parse_opening(opens) if opens else None
    if deadline != page.typed_date(closes_at):
        closes_at = parse_deadline(deadline) if deadline else None
    return competitions.BoardDates(opens_at, closes_at)


@router.post("/competitions/{name}/extend")
async def extend(request: Request, submitted: sessions.SmallForm, name: str) -> Response:
    """Move the deadlines of its boards that are before a date to that date."""
    competition = await _own(request, submitted.caller, name)
    context = context_of(request)
    try:
        until = parse_deadline(submitted.fields.text("until"))
        await competitions.extend_competition(
            context.store, context.clock, submitted.caller, name, until=until
        )
    except UserError as error:
        return await _edit_form(request, submitted.browser, competition, fault=error)
    return page.redirect(_address(competition), "changed")


@router.post("/competitions/{name}/close")
async def close(request: Request, submitted: sessions.SmallForm, name: str) -> Response:
    """Close its open boards now."""
    competition = await _own(request, submitted.caller, name)
    context = context_of(request)
    try:
        await competitions.close_competition(context.store, context.clock, submitted.caller, name)
    except UserError as error:
        return await _edit_form(request, submitted.browser, competition, fault=error)
    return page.redirect(_address(competition), "closed")


@router.post("/competitions/{name}/delete")
async def delete(request: Request, submitted: sessions.SmallForm, name: str) -> Response:
    """Delete it and, if asked, its boards, unless one has changed since its archive was offered."""
    competition = await _own(request, submitted.caller, name)
    context, fields = context_of(request), submitted.fields
    with_boards = fields.text("boards") == "delete"
    try:
        competitions.require_typed(competition.name, fields.text("typed"))
        _require_saved(fields, with_boards=with_boards)
        await competitions.delete_competition(
            context.store,
            context.clock,
            submitted.caller,
            name,
            reason=fields.reason,
            archives=fields.texts("archive") if with_boards else None,
        )
    except UserError as error:
        return await _edit_form(request, submitted.browser, competition, fault=error)
    return page.redirect(_NEW, "competition-ended")


def _require_saved(fields: sessions.Fields, *, with_boards: bool) -> None:
    if with_boards and fields.text("saved") != "yes":
        words = "confirm that you have saved the boards' sources or do not need them"
        raise UserError("not-saved", words)


async def _own(request: Request, caller: Caller, name: str) -> Competition:
    """Return a competition that the caller may change; its boards may belong to others too."""
    require_creator(caller)
    context = context_of(request)
    found = await competitions.find_competition(context.store, context.clock, caller, name)
    if not found.belongs_to(caller):
        raise UserError("not-yours", f"competition {name!r} belongs to another person")
    return found


def _address(competition: Competition) -> str:
    return f"{page.quoted('competitions', competition.name)}/edit"


async def _edit_form(
    request: Request,
    browser: sessions.Browser,
    competition: Competition,
    fault: UserError | None = None,
) -> Response:
    context = context_of(request)
    rows = [await _row(context, each) for each in competition.boards]
    now = context.clock.now()
    values = {
        "title": f"Edit {competition.name}",
        "competition": competition,
        "dates": dates_line(competition, now),
        "can_close": competition.has_opened(now) and not competition.has_closed(now),
        "rows": rows,
    }
    return await page.show(request, browser, "actions/edit_competition.html", values, fault=fault)


async def _row(context: WebContext, board: Board) -> Mapping[str, Any]:
    """Return a board's dates, how many submissions it has, and the state of its archive."""
    count = len(await context.store.submissions.to(board.id))
    return {
        "board": board,
        "opens": page.typed_date(board.rules.opens_at),
        "deadline": page.typed_date(board.deadline),
        "count": count,
        "state": BoardArchive(board, (), count).state,
    }
