"""`/submit`: submits a file, and performs actions on a submission."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request, Response

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
from bot.web.context import WebContext, context_of
from bot.web.rendering import Part, draw, live
from bot.web.routes.actions.page import SignedIn, go, part, show
from bot.web.sessions import ROOM, Act, Browser, Fields, Posted, deeds_of, posted, still_signed_in
from runners.contract.gpus import spelled
from runners.contract.task import Mode
from runners.languages import spec_of

router = APIRouter(prefix="/submit")

MODES = (
    (Mode.RANKED, "tests, then times that count, on inputs from secret seeds"),
    (Mode.TEST, "is the answer right?"),
    (Mode.BENCHMARK, "every benchmark timed, nothing ranked"),
    (Mode.PROFILE, "where the time goes"),
)
_MOST = acceptance.MAX_SOURCE_BYTES + ROOM
_Upload = Annotated[Posted, Depends(posted(3 * _MOST))]
"""A pasted source is three times as long when encoded in a form."""


@dataclass(frozen=True, slots=True)
class _Draft:
    """A submission being prepared."""

    content: bytes = b""
    file_name: str = ""
    is_pasted: bool = False
    board: str | None = None
    gpus: tuple[str, ...] = ()
    earlier_board: str | None = None
    """The board chosen before; used when this file's header names none."""
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
    return await show(request, browser, "acting/submit.html", values)


@router.post("/look")
async def look(request: Request, act: _Upload) -> Response:
    """Show what the file's header says, and the remaining choices."""
    draft = await _draft(act.fields)
    return part("acting/choice.html", await _values(context_of(request), act.caller, draft))


@router.post("")
async def take_in(request: Request, act: _Upload) -> Response:
    """Store the submission and redirect to its progress; or show the form again with the error."""
    require_acting(act.caller)
    door, draft = context_of(request), await _draft(act.fields)
    try:
        draft = await _named(door, act.caller, draft)
        stored = await submissions.submit(
            door.store,
            door.clock,
            SubmissionRequest(
                viewer=act.caller,
                file_name=draft.file_name,
                content=draft.content,
                mode=draft.mode,
                board=draft.board,
                gpus=draft.gpus,
            ),
        )
    except UserError as error:
        values = await _values(door, act.caller, draft)
        return await show(request, act.browser, "acting/submit.html", values, fault=error)
    return go(f"/submit/{stored.id}")


async def _draft(fields: Fields) -> _Draft:
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


async def _named(door: WebContext, viewer: Viewer, draft: _Draft) -> _Draft:
    """Give a pasted source the file name of its board's language."""
    if draft.file_name or not draft.content.strip():
        return draft
    heading = parse_header(acceptance.source_text(draft.content))
    name = acceptance.board_name(draft.board, heading)
    _, task = await lookup.task_of(door.store, viewer, name)
    return replace(draft, file_name=f"kernel{spec_of(task.lang).suffixes[0]}")


async def _values(door: WebContext, viewer: Viewer, draft: _Draft) -> dict[str, Any]:
    """Return the form's values: the current choices and the options."""
    heading, remark = _heading(draft)
    now = door.clock.now()
    boards = [each for each in await lookup.visible_boards(door.store, viewer) if each.is_open(now)]
    name = draft.board or heading.leaderboard or draft.earlier_board
    board: Board | None = None
    if name is not None:
        try:
            board = await lookup.find_board(door.store, viewer, name)
            acceptance.check_open(board, now)
        except UserError as error:
            remark = remark or error.message
    elif len(boards) == 1:
        board = boards[0]
    return {
        "title": "Submit",
        "boards": boards,
        "board": board,
        "heading": heading,
        "remark": remark,
        "chosen": _chosen(board, draft.gpus or heading.gpus or draft.earlier_gpus),
        "modes": MODES,
        "mode": draft.mode,
        "source": draft.content.decode(errors="replace") if draft.is_pasted else "",
        "most": acceptance.MAX_SOURCE_BYTES,
        "accept": ",".join((*acceptance.suffixes(), ".txt", "text/plain")),
    }


def _heading(draft: _Draft) -> tuple[Header, str]:
    """Return the file's header, and what is wrong with it."""
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
    found = (spelled(each, board.gpus) for each in wanted)
    return frozenset(each for each in found if each is not None)


Number = Annotated[int, Path(ge=1, le=2**53)]
_LONGEST_REASON = 300


@router.get("/{number}")
async def progress(request: Request, browser: SignedIn, number: Number) -> Response:
    """Show its progress up to the verdict; updates itself."""
    door = context_of(request)
    await lookup.own_submission(door.store, browser.session.caller, SubmissionId(number))
    found = await status.submission_status(door.store, SubmissionId(number))
    values = {
        "title": f"Submission {number}",
        "status": found,
        "part": await _drawn(door, browser, found),
    }
    return await show(request, browser, "acting/progress.html", values)


@router.get("/{number}/events")
async def events(request: Request, browser: SignedIn, number: Number) -> Response:
    """Stream the changing part of that page."""
    door = context_of(request)
    await lookup.own_submission(door.store, browser.session.caller, SubmissionId(number))

    async def part() -> Part:
        found = await status.submission_status(door.store, SubmissionId(number))
        return await _drawn(door, browser, found), found.is_final

    return live(door, part, lambda: still_signed_in(request, browser))


async def _drawn(door: WebContext, browser: Browser, found: SubmissionStatus) -> str:
    number = found.submission.id
    ranked = found.submission.mode is Mode.RANKED and found.exclusion is None
    is_placed = found.is_final and ranked
    places = await standings.placements(door.store, number) if is_placed else ()
    values = {
        "status": found,
        "lines": [(each, job_line(each)) for each in found.jobs],
        "places": [placement_line(each) for each in places],
        "best": any(each.is_best for each in places),
        "first": any(each.rank == 1 and each.is_best for each in places),
        "unserved": () if found.is_final else await status.unserved_in_words(door.store, number),
        "deeds": deeds_of(browser, found),
    }
    return draw("acting/live.html", values)


@router.post("/{number}/again")
async def run_again(request: Request, act: Act, number: Number) -> Response:
    """Submit the same source again."""
    return await _rerun(request, act, number, None)


@router.post("/{number}/ranked")
async def rank_it(request: Request, act: Act, number: Number) -> Response:
    """Submit the same source as ranked."""
    return await _rerun(request, act, number, Mode.RANKED)


async def _rerun(request: Request, act: Act, number: int, mode: Mode | None) -> Response:
    require_acting(act.caller)
    door = context_of(request)
    wanted = submissions.RerunRequest(act.caller, SubmissionId(number), mode)
    again = await submissions.rerun(door.store, door.clock, wanted)
    return go(f"/submit/{again.id}")


@router.post("/{number}/cancel", status_code=HTTPStatus.SEE_OTHER)
async def stop(request: Request, act: Act, number: Number) -> Response:
    """Stop it: queued jobs end at once, running ones within seconds."""
    require_acting(act.caller)
    if not await submissions.cancel(context_of(request).store, act.caller, SubmissionId(number)):
        raise UserError("finished", f"submission {number} has ended already")
    return go(f"/submit/{number}")


@router.post("/{number}/withdraw")
async def take_back(request: Request, act: Act, number: Number) -> Response:
    """Take it off its board permanently; its result stays."""
    require_acting(act.caller)
    reason = act.fields.text("reason")[:_LONGEST_REASON]
    await moderation.withdraw(context_of(request).store, act.caller, reason, SubmissionId(number))
    return go(f"/submit/{number}")
