"""`/submit`: submits a file, shows its progress, and acts on the person's own submission."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from pathlib import PurePath
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response

from bot.domain import acceptance
from bot.domain.acceptance import Header, parse_header
from bot.domain.accounts import Caller, require_acting
from bot.domain.board import Board, Viewer
from bot.domain.errors import UserError
from bot.domain.ids import SubmissionId
from bot.domain.status import SubmissionStatus
from bot.domain.submission import SubmissionRequest
from bot.reports.confirmations import confirmation_lines
from bot.reports.standings import placement_lines
from bot.reports.submission import job_line, job_notes, outcome
from bot.services import lookup, moderation, standings, status, submissions
from bot.services.rules import submission_rules
from bot.web import rendering, sessions
from bot.web.context import WebContext, context_of
from bot.web.markup import line_of
from bot.web.routes.actions.page import Number, SignedIn, part, redirect, show
from runners.contract.gpus import find_gpu_type
from runners.contract.task import Mode
from runners.languages import spec_by_suffix, spec_of

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
    gpu: Annotated[str, Query(max_length=64)] = "",
) -> Response:
    """Show the form for a file; the address may name the board and a GPU type."""
    caller, gpus = browser.session.caller, (gpu,) if gpu else ()
    draft = _Draft(board=leaderboard or None, gpus=gpus)
    values = await _values(context_of(request), caller, draft)
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
        stored = await _stored(context, submitted.caller, draft)
    except UserError as error:
        values = {**await _values(context, submitted.caller, draft), "remark": ""}
        return await show(request, submitted.browser, "actions/submit.html", values, fault=error)
    return redirect(f"/submit/{stored}")


async def _stored(context: WebContext, caller: Caller, draft: _Draft) -> SubmissionId:
    named = await _with_file_name(context, caller, draft)
    wanted = SubmissionRequest(
        viewer=caller,
        file_name=named.file_name,
        content=named.content,
        mode=named.mode,
        board=named.board,
        gpus=named.gpus,
    )
    return (await submissions.submit(context.store, context.clock, wanted)).id


async def _draft(fields: sessions.Fields) -> _Draft:
    file = await fields.file("file")
    pasted = fields.raw("source").replace("\r\n", "\n").encode(errors="replace")
    mode = fields.text("mode")
    return _Draft(
        content=pasted if file is None else file.content,
        file_name=fields.text("kept_name") if file is None else file.name,
        board=fields.text("board") or None,
        gpus=fields.texts("gpu"),
        earlier_board=fields.text("earlier_board") or None,
        earlier_gpus=fields.texts("earlier_gpu"),
        mode=Mode(mode) if mode in set(Mode) else Mode.RANKED,
    )


async def _with_file_name(context: WebContext, viewer: Viewer, draft: _Draft) -> _Draft:
    """Give a pasted source the file name of its board's language."""
    if draft.file_name:
        return draft
    if not draft.content.strip():
        raise UserError("empty", "no file was chosen; choose one, or paste its source")
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
        "earlier": draft.earlier_board,
        "pause": (await submission_rules(context.store)).pause,
        "chosen": _chosen(board, draft.gpus or header.gpus or draft.earlier_gpus),
        "modes": MODES,
        "mode": draft.mode,
        **_kept(draft),
        "most": acceptance.MAX_SOURCE_BYTES,
        "accept": ",".join((*acceptance.suffixes(), ".txt", "text/plain")),
    }


def _kept(draft: _Draft) -> dict[str, str]:
    """Return the source and its file name, so that the form shown again still has them."""
    try:
        return {"source": draft.content.decode(), "file_name": draft.file_name}
    except UnicodeDecodeError:
        return {"source": "", "file_name": ""}


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
    return frozenset(each for each in found if each is not None) or frozenset(board.gpus[:1])


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
        return await _render_progress(context, browser, reading), reading.is_settled

    return rendering.live(context, part, lambda: sessions.still_signed_in(request, browser))


async def _render_progress(
    context: WebContext, browser: sessions.Browser, reading: SubmissionStatus
) -> str:
    number = reading.submission.id
    ranked = reading.submission.mode is Mode.RANKED and reading.exclusion is None
    is_placed = reading.is_settled and ranked
    placements = await standings.placements(context.store, number) if is_placed else ()
    values = {
        "status": reading,
        "outcome": outcome(reading),
        "lines": [(each, job_line(each), [*job_notes(each)]) for each in reading.jobs],
        "confirmations": [*confirmation_lines(reading)],
        "places": placement_lines(placements, reading),
        "best": any(each.is_best for each in placements),
        "first": any(each.rank == 1 and each.is_best for each in placements),
        "unserved": ()
        if reading.is_final
        else await status.unserved_in_words(context.store, number),
        "buttons": sessions.submission_buttons(browser, reading),
    }
    return rendering.render("actions/live.html", values)


@router.get("/{number}/edit")
async def edit(request: Request, browser: SignedIn, number: Number) -> Response:
    """Show the source of the person's own submission in an editor, at the line that failed."""
    return await _edit_form(request, browser, SubmissionId(number))


@router.post("/{number}/edit")
async def resubmit(request: Request, submitted: _Upload, number: Number) -> Response:
    """Submit the edited source; or show the editor again with the error."""
    require_acting(submitted.caller)
    context, draft = context_of(request), await _draft(submitted.fields)
    try:
        stored = await _stored(context, submitted.caller, draft)
    except UserError as error:
        return await _edit_form(request, submitted.browser, SubmissionId(number), (draft, error))
    return redirect(f"/submit/{stored}")


async def _edit_form(
    request: Request,
    browser: sessions.Browser,
    number: SubmissionId,
    refused: tuple[_Draft, UserError] | None = None,
) -> Response:
    context, caller = context_of(request), browser.session.caller
    await lookup.own_submission(context.store, caller, number)
    reading = await status.submission_status(context.store, number)
    found = await status.source(context.store, context.clock, caller, number)
    last = reading.submission
    draft, fault = refused or (_Draft(gpus=last.gpus, mode=last.mode), None)
    values = {
        "title": f"Edit submission {number}",
        "status": reading,
        "before": found.text,
        "source": found.text if refused is None else draft.content.decode(errors="replace"),
        "lang": _lexer_of(found.file_name),
        "line": _failing_line(reading),
        "chosen": draft.gpus,
        "modes": MODES,
        "mode": draft.mode,
    }
    return await show(request, browser, "actions/edit_source.html", values, fault=fault)


def _lexer_of(file_name: str) -> str:
    spec = spec_by_suffix(PurePath(file_name).suffix)
    return "" if spec is None else spec.lexer


def _failing_line(reading: SubmissionStatus) -> int | None:
    """Return the line that the first message names, of those that name one."""
    messages = (each.evaluation.message for each in reading.jobs if each.evaluation is not None)
    return next((line for line in map(line_of, messages) if line is not None), None)


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
    reason = submitted.fields.reason
    await moderation.withdraw(
        context_of(request).store, submitted.caller, reason, SubmissionId(number)
    )
    return redirect(f"/submit/{number}")


@router.post("/{number}/note")
async def note(request: Request, submitted: sessions.SmallForm, number: Number) -> Response:
    """Store the author's note about a submission, and show it on its page."""
    require_acting(submitted.caller)
    text, store = submitted.fields.text("note"), context_of(request).store
    await moderation.write_note(store, submitted.caller, SubmissionId(number), text)
    return redirect(f"/submissions/{number}#note")
