"""`/submit`: submits a file, shows its progress, and acts on the person's own submission."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response

from bot.domain import acceptance
from bot.domain.acceptance import Header, parse_header
from bot.domain.accounts import require_acting
from bot.domain.board import Board, Viewer
from bot.domain.errors import UserError
from bot.domain.ids import SubmissionId
from bot.domain.status import SubmissionStatus
from bot.domain.submission import SubmissionRequest
from bot.reports.standings import placement_line
from bot.reports.submission import job_line
from bot.services import lookup, moderation, standings, status, submissions
from bot.web import rendering, sessions
from bot.web.context import WebContext, context_of
from bot.web.routes.actions.page import Number, SignedIn, part, reason_of, redirect, show
from runners.contract.gpus import find_gpu_type
from runners.contract.task import Mode
from runners.languages import spec_of

router = APIRouter(prefix="/submit")

MODES = (
    (Mode.RANKED, "tests, then times for the ranking, on inputs from secret seeds"),
    (Mode.TEST, "only the tests, without timing"),
    (Mode.BENCHMARK, "every benchmark timed, but not ranked"),
    (Mode.PROFILE, "where the time goes, by a profiler"),
)
_MOST = acceptance.MAX_SOURCE_BYTES + sessions.MOST
_Upload = Annotated[sessions.SubmittedForm, Depends(sessions.submitted_form(2 * _MOST))]
"""Browsers send each line of a pasted source with two bytes at its end."""


@dataclass(frozen=True, slots=True)
class _Draft:
    """A submission being prepared."""

    content: bytes = b""
    file_name: str = ""
    is_pasted: bool = False
    board: str | None = None
    gpus: tuple[str, ...] = ()
    earlier_board: str | None = None
    """The board chosen for the previous file; used when this file's header names none."""
    earlier_gpus: tuple[str, ...] = ()
    mode: Mode = Mode.RANKED


@router.get("")
async def form(
    request: Request,
    browser: SignedIn,
    leaderboard: Annotated[str | None, Query(max_length=200)] = None,
) -> Response:
    """Show the form for a file."""
    caller = browser.session.caller
    values = await _values(context_of(request), caller, _Draft(board=leaderboard or None))
    return await show(request, browser, "actions/submit.html", values)


@router.post("/look")
async def preview(request: Request, submitted: _Upload) -> Response:
    """Show what the file's header says, and the remaining choices."""
    draft = await _draft(submitted.fields)
    return part("actions/choice.html", await _values(context_of(request), submitted.caller, draft))


@router.post("")
async def submit(request: Request, submitted: _Upload) -> Response:
    """Store the submission and redirect to its progress; or show the form again with the error."""
    require_acting(submitted.caller)
    context, draft = context_of(request), await _draft(submitted.fields)
    try:
        draft = await _with_file_name(context, submitted.caller, draft)
        stored = await submissions.submit(
            context.store,
            context.clock,
            SubmissionRequest(
                viewer=submitted.caller,
                file_name=draft.file_name,
                content=draft.content,
                mode=draft.mode,
                board=draft.board,
                gpus=draft.gpus,
            ),
        )
    except UserError as error:
        values = await _values(context, submitted.caller, draft)
        return await show(request, submitted.browser, "actions/submit.html", values, fault=error)
    return redirect(f"/submit/{stored.id}")


async def _draft(fields: sessions.Fields) -> _Draft:
    file = await fields.file("file")
    pasted = fields.raw("source").replace("\r\n", "\n").encode(errors="replace")
    mode = fields.text("mode")
    return _Draft(
        content=pasted if file is None else file.content,
        file_name="" if file is None else file.name,
        is_pasted=file is None,
        board=fields.text("board") or None,
        gpus=fields.texts("gpu"),
        earlier_board=fields.text("earlier_board") or None,
        earlier_gpus=fields.texts("earlier_gpu"),
        mode=Mode(mode) if mode in set(Mode) else Mode.RANKED,
    )


async def _with_file_name(context: WebContext, viewer: Viewer, draft: _Draft) -> _Draft:
    """Give a pasted source the file name of its board's language."""
    if draft.file_name or not draft.content.strip():
        return draft
    header = parse_header(acceptance.source_text(draft.content))
    name = acceptance.board_name(draft.board, header)
    _, task = await lookup.task_of(context.store, viewer, name)
    return replace(draft, file_name=f"kernel{spec_of(task.lang).suffixes[0]}")


async def _values(context: WebContext, viewer: Viewer, draft: _Draft) -> dict[str, Any]:
    """Return the form's values: the current choices and the options."""
    header, remark = _header(draft)
    now = context.clock.now()
    visible = await lookup.visible_boards(context.store, viewer)
    boards = [each for each in visible if each.accepts(Mode.TEST, now)]
    name = draft.board or header.leaderboard or draft.earlier_board
    board: Board | None = None
    if name is not None:
        try:
            board = await lookup.find_board(context.store, viewer, name)
            acceptance.check_open(board, draft.mode, now)
        except UserError as error:
            remark = remark or error.message
    elif len(boards) == 1:
        board = boards[0]
    return {
        "title": "Submit",
        "boards": boards,
        "board": board,
        "header": header,
        "remark": remark,
        "chosen": _chosen(board, draft.gpus or header.gpus or draft.earlier_gpus),
        "modes": MODES,
        "mode": draft.mode,
        "source": draft.content.decode(errors="replace") if draft.is_pasted else "",
        "most": acceptance.MAX_SOURCE_BYTES,
        "accept": ",".join((*acceptance.suffixes(), ".txt", "text/plain")),
    }


def _header(draft: _Draft) -> tuple[Header, str]:
    """Return the file's header, and the error in it, if any."""
    if not draft.content.strip():
        return Header(), ""
    try:
        return parse_header(acceptance.source_text(draft.content)), ""
    except UserError as error:
        return Header(), error.message


def _chosen(board: Board | None, wanted: Sequence[str]) -> frozenset[str]:
    if board is None:
        return frozenset()
    if len(board.gpus) == 1:
        return frozenset(board.gpus)
    found = (find_gpu_type(each, board.gpus) for each in wanted)
    return frozenset(each for each in found if each is not None)


@router.get("/{number}")
async def progress(request: Request, browser: SignedIn, number: Number) -> Response:
    """Show its progress up to the verdict; updates itself."""
    context = context_of(request)
    await lookup.own_submission(context.store, browser.session.caller, SubmissionId(number))
    reading = await status.submission_status(context.store, SubmissionId(number))
    values = {
        "title": f"Submission {number}",
        "status": reading,
        "part": await _render_progress(context, browser, reading),
    }
    return await show(request, browser, "actions/progress.html", values)


@router.get("/{number}/events")
async def events(request: Request, browser: SignedIn, number: Number) -> Response:
    """Stream the changing part of that page."""
    context = context_of(request)
    await lookup.own_submission(context.store, browser.session.caller, SubmissionId(number))

    async def part() -> rendering.Part:
        reading = await status.submission_status(context.store, SubmissionId(number))
        return await _render_progress(context, browser, reading), reading.is_final

    return rendering.live(context, part, lambda: sessions.still_signed_in(request, browser))


async def _render_progress(
    context: WebContext, browser: sessions.Browser, reading: SubmissionStatus
) -> str:
    number = reading.submission.id
    ranked = reading.submission.mode is Mode.RANKED and reading.exclusion is None
    is_placed = reading.is_final and ranked
    placements = await standings.placements(context.store, number) if is_placed else ()
    values = {
        "status": reading,
        "lines": [(each, job_line(each)) for each in reading.jobs],
        "places": [placement_line(each) for each in placements],
        "best": any(each.is_best for each in placements),
        "first": any(each.rank == 1 and each.is_best for each in placements),
        "unserved": ()
        if reading.is_final
        else await status.unserved_in_words(context.store, number),
        "buttons": sessions.submission_buttons(browser, reading),
    }
    return rendering.render("actions/live.html", values)


@router.post("/{number}/again")
async def rerun(request: Request, submitted: sessions.SmallForm, number: Number) -> Response:
    """Submit the same source again."""
    return await _rerun(request, submitted, number, None)


@router.post("/{number}/ranked")
async def run_ranked(request: Request, submitted: sessions.SmallForm, number: Number) -> Response:
    """Submit the same source as ranked."""
    return await _rerun(request, submitted, number, Mode.RANKED)


async def _rerun(
    request: Request, submitted: sessions.SmallForm, number: int, mode: Mode | None
) -> Response:
    require_acting(submitted.caller)
    context = context_of(request)
    wanted = submissions.RerunRequest(submitted.caller, SubmissionId(number), mode)
    new = await submissions.rerun(context.store, context.clock, wanted)
    return redirect(f"/submit/{new.id}")


@router.post("/{number}/cancel", status_code=HTTPStatus.SEE_OTHER)
async def cancel(request: Request, submitted: sessions.SmallForm, number: Number) -> Response:
    """Stop it: queued jobs end at once, running ones within seconds."""
    require_acting(submitted.caller)
    if not await submissions.cancel(
        context_of(request).store, submitted.caller, SubmissionId(number)
    ):
        raise UserError("finished", f"submission {number} has ended already")
    return redirect(f"/submit/{number}")


@router.post("/{number}/withdraw")
async def withdraw(request: Request, submitted: sessions.SmallForm, number: Number) -> Response:
    """Take it off its board permanently; its result stays."""
    require_acting(submitted.caller)
    reason = reason_of(submitted.fields)
    await moderation.withdraw(
        context_of(request).store, submitted.caller, reason, SubmissionId(number)
    )
    return redirect(f"/submit/{number}")
