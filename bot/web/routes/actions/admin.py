"""`/admin`: bans, disqualifications, rejudging, pauses, limits, finals; audit log and costs."""

import re
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from bot.domain.accounts import require_admin
from bot.domain.board import NOBODY, Board, Viewer
from bot.domain.costs import MOST_DAYS, MOST_QUOTA, Quota, QuotaKey, Unit
from bot.domain.errors import UserError
from bot.domain.finals import DEFAULT_TOP, MOST_TOP, FinalRequest
from bot.domain.ids import BoardId, SubmissionId
from bot.domain.submission import RateLimit
from bot.domain.times import parse_deadline
from bot.ports import Store
from bot.reports.admin import stats_report, submission_rules_report, workers_report
from bot.reports.confirmations import finals_report
from bot.reports.costs import costs_report
from bot.services import finals, lookup, moderation, operations, submissions
from bot.services.audit import audit_page
from bot.services.rules import submission_rules
from bot.web.context import context_of
from bot.web.markup import highlighted
from bot.web.routes.actions.page import SignedIn, redirect, show
from bot.web.sessions import Browser, Fields, SmallForm, SubmittedForm, parse_amount, parse_number
from runners.contract.task import Mode

router = APIRouter(prefix="/admin")

ROWS = 50
"""Rows on one page of the audit log."""
_EVERYTHING = Viewer(NOBODY, sees_all=True)
_PERIODS = {1: "Today", 7: "7 days", 30: "30 days"}
_IN_PLACE = re.compile(r"/(submissions|people)/[0-9]{1,19}", re.ASCII)
"""The paths of the pages that have forms for admins."""
_TYPED = ("who", "submission", "reason", "until", "most", "unit")
"""The fields of those forms, which an error leaves filled."""
_MOST, _MOST_MINUTES = 100_000, 525_600
"""The most submissions that a rate limit may allow, and the most minutes of its window."""


@router.get("")
async def overview(request: Request, browser: SignedIn) -> Response:
    """Show limits, quotas, pauses, bans, finals, workers, statistics; a form for each action."""
    return await _page(request, browser)


@router.get("/costs")
async def costs(
    request: Request, browser: SignedIn, days: Annotated[int, Query(ge=1, le=MOST_DAYS)] = 1
) -> Response:
    """Show who used how much GPU time and what it cost: today, or on the last days."""
    require_admin(browser.session.caller)
    context = context_of(request)
    found = costs_report(await operations.costs(context.store, context.clock, days))
    values = {"title": "Costs", "found": found, "days": days, "periods": _PERIODS}
    return await show(request, browser, "actions/costs.html", values)


@router.get("/audit")
async def audit(
    request: Request, browser: SignedIn, page: Annotated[int, Query(ge=1, le=100_000)] = 1
) -> Response:
    """Show who did what, when and why, newest first."""
    require_admin(browser.session.caller)
    entries = await audit_page(context_of(request).store, page - 1, ROWS)
    values = {"title": "Audit", "found": entries, "page": page}
    return await show(request, browser, "actions/audit.html", values)


async def _ban(store: Store, decision: moderation.Decision, fields: Fields) -> str:
    _require_reason(decision)
    end = fields.text("until").strip()
    await moderation.ban(store, decision, fields.text("who"), parse_deadline(end) if end else None)
    return "banned"


async def _unban(store: Store, decision: moderation.Decision, fields: Fields) -> str:
    await moderation.unban(store, decision, fields.text("who"))
    return "unbanned"


async def _reset_name(store: Store, decision: moderation.Decision, fields: Fields) -> str:
    _require_reason(decision)
    await moderation.reset_name(store, decision, fields.text("who"))
    return "name-reset"


async def _disqualify(store: Store, decision: moderation.Decision, fields: Fields) -> str:
    _require_reason(decision)
    await moderation.disqualify(store, decision, _submission(fields))
    return "disqualified"


async def _requalify(store: Store, decision: moderation.Decision, fields: Fields) -> str:
    await moderation.requalify(store, decision, _submission(fields))
    return "requalified"


async def _rejudge(store: Store, decision: moderation.Decision, fields: Fields) -> str:
    await submissions.rejudge_submission(store, decision, _submission(fields))
    return "rejudging"


async def _cancel(store: Store, decision: moderation.Decision, fields: Fields) -> str:
    await moderation.cancel(store, decision, _submission(fields))
    return "cancelled"


async def _limit(store: Store, decision: moderation.Decision, fields: Fields) -> str:
    most = _number(fields, "most", _MOST)
    window = timedelta(minutes=_number(fields, "minutes", _MOST_MINUTES))
    board, mode = await _scope(store, fields)
    await moderation.set_limit(store, decision, RateLimit(most, window, board, mode))
    return "limited"


async def _unlimit(store: Store, decision: moderation.Decision, fields: Fields) -> str:
    await moderation.drop_limit(store, decision, *await _scope(store, fields))
    return "unlimited"


async def _quota(store: Store, decision: moderation.Decision, fields: Fields) -> str:
    quota = Quota(await _quota_key(store, fields), _amount(fields))
    await moderation.set_quota(store, decision, quota)
    return "limited"


async def _unquota(store: Store, decision: moderation.Decision, fields: Fields) -> str:
    await moderation.drop_quota(store, decision, await _quota_key(store, fields))
    return "unlimited"


async def _limit_time(store: Store, decision: moderation.Decision, fields: Fields) -> str:
    """Limit one person's GPU time of a day; no amount removes the limit."""
    who, key = fields.text("who"), QuotaKey(_unit(fields))
    if not fields.text("most").strip():
        await moderation.drop_quota(store, decision, key, who)
        return "time-unlimited"
    _require_reason(decision)
    await moderation.set_quota(store, decision, Quota(key, _amount(fields)), who)
    return "time-limited"


async def _pause(store: Store, decision: moderation.Decision, fields: Fields) -> str:
    _require_reason(decision)
    match fields.text("what"), fields.text("which"):
        case "gpu", gpu:
            await moderation.pause_gpu(store, decision, gpu)
        case "board", name:
            await moderation.pause_board(store, decision, await _board(store, name))
        case _:
            await moderation.pause(store, decision)
    return "paused"


async def _resume(store: Store, decision: moderation.Decision, fields: Fields) -> str:
    match fields.text("what"), fields.text("which"):
        case "gpu", gpu:
            await moderation.resume_gpu(store, decision, gpu)
        case "board", name:
            await moderation.resume_board(store, decision, await _board(store, name))
        case _:
            await moderation.resume(store, decision)
    return "resumed"


async def _final(store: Store, decision: moderation.Decision, fields: Fields) -> str:
    request = FinalRequest(
        fields.text("board"), fields.text("gpu") or None, _number(fields, "top", MOST_TOP)
    )
    await finals.start_final(store, _EVERYTHING, decision, request)
    return "final"


async def _cancel_final(store: Store, decision: moderation.Decision, fields: Fields) -> str:
    await finals.cancel_final(store, _EVERYTHING, decision, fields.text("board"))
    return "final-cancelled"


ACTIONS: dict[str, Callable[[Store, moderation.Decision, Fields], Awaitable[str]]] = {
    "ban": _ban,
    "unban": _unban,
    "reset-name": _reset_name,
    "disqualify": _disqualify,
    "requalify": _requalify,
    "rejudge": _rejudge,
    "cancel": _cancel,
    "limit": _limit,
    "unlimit": _unlimit,
    "quota": _quota,
    "unquota": _unquota,
    "limit-time": _limit_time,
    "pause": _pause,
    "resume": _resume,
    "final": _final,
    "cancel-final": _cancel_final,
}


@router.post("/look")
async def look(request: Request, submitted: SmallForm) -> Response:
    """Show anyone's source to an admin; recorded in the audit log."""
    require_admin(submitted.caller)
    context = context_of(request)
    decision = moderation.Decision(submitted.caller.person, submitted.fields.reason)
    number = _submission(submitted.fields)
    seen = await moderation.look(context.store, context.clock, decision, number)
    code = await highlighted(seen.source.text, seen.source.file_name)
    values = {"title": f"Source of submission #{number}", "seen": seen, "code": code}
    values["reason"] = decision.reason
    return await show(request, submitted.browser, "actions/looked.html", values)


@router.post("/{action}")
async def decide(request: Request, submitted: SmallForm, action: str) -> Response:
    """Perform one action with its audit entry; show its form again if it fails."""
    require_admin(submitted.caller)
    if action not in ACTIONS:
        raise UserError("unknown-deed", f"unknown action; use one of: {', '.join(ACTIONS)}")
    fields = submitted.fields
    decision = moderation.Decision(submitted.caller.person, fields.reason)
    try:
        done = await ACTIONS[action](context_of(request).store, decision, fields)
    except UserError as error:
        return await _again(request, submitted, action, error)
    return redirect(_back(fields) or "/admin", done)


def _back(fields: Fields) -> str:
    """Return the page of a person or submission that had the form; empty for `/admin`."""
    back = fields.text("back")
    return back if _IN_PLACE.fullmatch(back) else ""


async def _again(
    request: Request, submitted: SubmittedForm, action: str, fault: UserError
) -> Response:
    """Show the error on `/admin`, or with the form if it was on another page."""
    fields = submitted.fields
    if not _back(fields):
        return await _page(request, submitted.browser, fault=fault)
    typed = {name: fields.text(name) for name in _TYPED}
    values = {"title": "Moderation", "action": action, "back": _back(fields), "typed": typed}
    return await show(request, submitted.browser, "actions/decision.html", values, fault=fault)


async def _page(request: Request, browser: Browser, *, fault: UserError | None = None) -> Response:
    require_admin(browser.session.caller)
    context = context_of(request)
    boards = await context.store.boards.all()
    values = {
        "title": "Admin",
        "rules": submission_rules_report(await submission_rules(context.store)),
        "workers": workers_report(await context.store.workers.alive(), context.clock.now()),
        "stats": stats_report(await operations.stats(context.store, context.clock)),
        "finals": [
            finals_report(board.name, found)
            for board in boards
            if (found := await context.store.finals.of(board.id))
        ],
        "top": DEFAULT_TOP,
        "boards": boards,
        "gpus": sorted({gpu for board in boards for gpu in board.gpus}),
        "modes": tuple(Mode),
    }
    return await show(request, browser, "actions/admin.html", values, fault=fault)


def _require_reason(decision: moderation.Decision) -> None:
    if not decision.reason:
        raise UserError("no-reason", "give a reason; the person concerned can read it")


def _submission(fields: Fields) -> SubmissionId:
    return SubmissionId(_number(fields, "submission", 2**53))


def _number(fields: Fields, name: str, most: int) -> int:
    number = parse_number(fields.text(name), most)
    if number is None:
        raise UserError("bad-number", f"{name}: write a number from 1 to {most:,}")
    return number


async def _scope(store: Store, fields: Fields) -> tuple[BoardId | None, Mode | None]:
    name, mode = fields.text("board"), fields.text("mode")
    board = (await _board(store, name)).id if name else None
    return board, Mode(mode) if mode in set(Mode) else None


async def _board(store: Store, name: str) -> Board:
    return await lookup.find_board(store, _EVERYTHING, name)


async def _quota_key(store: Store, fields: Fields) -> QuotaKey:
    board, _ = await _scope(store, fields)
    return QuotaKey(
        _unit(fields), fields.text("of") != "everyone", board, fields.text("gpu") or None
    )


def _unit(fields: Fields) -> Unit:
    return Unit.DOLLARS if fields.text("unit") == Unit.DOLLARS else Unit.SECONDS


def _amount(fields: Fields) -> float:
    most = parse_amount(fields.text("most"), MOST_QUOTA)
    if most is None:
        raise UserError("bad-number", "most: write a number above 0, such as 600 or 2.50")
    return most
