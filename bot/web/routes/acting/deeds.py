"""`/submit/NUMBER`: one's own submission on its way, and what can be done with it."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from bot.domain.errors import UserError
from bot.domain.ids import SubmissionId
from bot.domain.leaderboard import Placement
from bot.domain.rights import require_acting
from bot.domain.status import SubmissionStatus
from bot.reports.placement import placement_line
from bot.reports.status import job_line
from bot.services.cancel import cancel
from bot.services.lookup import own_submission
from bot.services.moderation import withdraw
from bot.services.placement import placements
from bot.services.rerun import RerunRequest, rerun
from bot.services.status import status
from bot.services.unserved import awaited
from bot.web.context import Door, door_of
from bot.web.forms import Act
from bot.web.rendering import draw
from bot.web.routes.actions.page import SignedIn, go, show
from bot.web.sessions import Browser, still_signed_in
from bot.web.sse import Part, live
from bot.web.submission_buttons import deeds_of
from runners.contract.task import Mode

router = APIRouter(prefix="/submit/{number}")

Number = Annotated[int, Path(ge=1, le=2**53)]
_LONGEST_REASON = 300


@router.get("")
async def progress(request: Request, browser: SignedIn, number: Number) -> Response:
    """Its way to the verdict; goes on by itself."""
    door = door_of(request)
    await own_submission(door.store, browser.session.caller, SubmissionId(number))
    found = await status(door.store, SubmissionId(number))
    values = {
        "title": f"Submission {number}",
        "status": found,
        "part": await _drawn(door, browser, found),
    }
    return await show(request, browser, "acting/progress.html", values)


@router.get("/events")
async def events(request: Request, browser: SignedIn, number: Number) -> Response:
    """The part of that page which moves, whenever it has."""
    door = door_of(request)
    await own_submission(door.store, browser.session.caller, SubmissionId(number))

    async def part() -> Part:
        found = await status(door.store, SubmissionId(number))
        return await _drawn(door, browser, found), found.is_final

    return live(door, part, lambda: still_signed_in(request, browser))


async def _drawn(door: Door, browser: Browser, found: SubmissionStatus) -> str:
    number = found.submission.id
    places: tuple[Placement, ...] = ()
    if found.is_final and found.submission.mode is Mode.RANKED and found.exclusion is None:
        places = await placements(door.store, number)
    values = {
        "status": found,
        "lines": [(each, job_line(each)) for each in found.jobs],
        "places": [placement_line(each) for each in places],
        "best": any(each.is_best for each in places),
        "first": any(each.rank == 1 and each.is_best for each in places),
        "unserved": () if found.is_final else await awaited(door.store, number),
        "deeds": deeds_of(browser, found),
    }
    return draw("acting/live.html", values)


@router.post("/again")
async def run_again(request: Request, act: Act, number: Number) -> Response:
    """The same source as a new submission."""
    return await _rerun(request, act, number, None)


@router.post("/ranked")
async def rank_it(request: Request, act: Act, number: Number) -> Response:
    """The same source as a ranked submission."""
    return await _rerun(request, act, number, Mode.RANKED)


async def _rerun(request: Request, act: Act, number: int, mode: Mode | None) -> Response:
    require_acting(act.caller)
    door = door_of(request)
    wanted = RerunRequest(act.caller, SubmissionId(number), mode)
    again = await rerun(door.store, door.clock, wanted)
    return go(f"/submit/{again.id}")


@router.post("/cancel", status_code=HTTPStatus.SEE_OTHER)
async def stop(request: Request, act: Act, number: Number) -> Response:
    """What is queued ends at once, what runs within seconds."""
    require_acting(act.caller)
    if not await cancel(door_of(request).store, act.caller, SubmissionId(number)):
        raise UserError("finished", f"submission {number} has ended already")
    return go(f"/submit/{number}")


@router.post("/withdraw")
async def take_back(request: Request, act: Act, number: Number) -> Response:
    """Off its board for good; its result stays."""
    require_acting(act.caller)
    reason = act.fields.text("reason")[:_LONGEST_REASON]
    await withdraw(door_of(request).store, act.caller, reason, SubmissionId(number))
    return go(f"/submit/{number}")
