"""What popcorn-cli's admins do, as far as Podium does it in the same way.

`POPCORN_ADMIN_TOKEN` is a token of scope admin. What Podium does in another way is said with 501.
"""

from collections.abc import Iterator
from datetime import date
from itertools import groupby

from fastapi import APIRouter, Request, Response

from bot.domain.errors import UserError
from bot.domain.ids import SubmissionId
from bot.domain.job import JobState
from bot.domain.records import InstallationStats, Usage
from bot.frontends.web.door import door_of
from bot.frontends.web.routes.popcorn.answering import Route, answered, not_offered
from bot.frontends.web.routes.popcorn.queues import Json
from bot.frontends.web.routes.popcorn.submissions import Number, details
from bot.frontends.web.viewers import MayAdminister
from bot.services.moderate import Deed, disqualify, pause, resume
from bot.services.reading import read_submission
from bot.services.stats import stats

router = APIRouter(prefix="/admin", route_class=Route)

_REASON = "by popcorn-cli"
_ELSEWHERE = {
    "rate-limits": "limits of submissions are set by PUT /api/v1/admin/limits, or on Discord",
    "visibility": "who may see a board is changed by PATCH /api/v1/leaderboards/NAME",
    "submission": "nobody submits after the deadline; to open the board again, change its deadline "
    "by PATCH /api/v1/leaderboards/NAME",
    "submissions": "submissions are taken off one by one: DELETE /admin/submissions/N; all of a "
    "board are in GET /api/v1/leaderboards/NAME/export",
    "application-validations": "every ranked answer is checked when it is timed; there is no later "
    "validation",
    "invites": "people are invited by their names: /leaderboard invite on Discord",
    "update-problems": "a set of tasks is published by `podium task publish SET.yaml`",
    "leaderboards": "boards are made by `podium task publish DIR` or /leaderboard create on "
    "Discord, and deleted by /leaderboard delete, which hands out the sources first",
    "ban": "people are banned by /admin ban on Discord",
    "export-hf": "a board is exported by /admin export on Discord",
}


@router.post("/start")
async def start(request: Request, admin: MayAdminister) -> Response:
    """Take submissions again."""
    try:
        await resume(door_of(request).store, Deed(admin.person, _REASON))
    except UserError as error:
        if error.code != "not-paused":  # twice is no fault
            raise
    return answered({"status": "ok", "accepts_jobs": True})


@router.post("/stop")
async def stop(request: Request, admin: MayAdminister) -> Response:
    """Take no more submissions; what is stored is judged on."""
    await pause(door_of(request).store, Deed(admin.person, "paused by an admin"))
    return answered({"status": "ok", "accepts_jobs": False})


@router.get("/stats")
async def counts(
    request: Request,
    admin: MayAdminister,  # noqa: ARG001 - for its rights
    *,
    last_day_only: bool = False,
) -> Response:
    """What goes on: of today, or of the last two weeks with the use of the GPUs."""
    door = door_of(request)
    found = await stats(door.store, door.clock)
    today = door.clock.now().date() if last_day_only else None
    return answered({"status": "ok", "stats": _stats(found, today)})


@router.get("/submissions/{number}")
async def one(request: Request, admin: MayAdminister, number: Number) -> Response:
    """Anybody's submission; its source only where the board shows it to others."""
    door = door_of(request)
    reading = await read_submission(door.store, door.clock, admin, SubmissionId(number))
    found = await details(door, admin, reading)
    job = found.pop("job")
    return answered({"status": "ok", "submission": {"submission_id": number, **found, "job": job}})


@router.delete("/submissions/{number}")
async def take_off(request: Request, admin: MayAdminister, number: Number) -> Response:
    """Take anybody's submission off its board; it is kept with its result."""
    store = door_of(request).store
    await disqualify(store, Deed(admin.person, _REASON), SubmissionId(number))
    return answered({"status": "ok", "submission_id": number})


@router.api_route("/{deed:path}", methods=["DELETE", "GET", "POST", "PUT"])
async def other(admin: MayAdminister, deed: str) -> Response:  # noqa: ARG001 - for its rights
    """Everything else is done elsewhere."""
    named = (words for part, words in _ELSEWHERE.items() if part in deed.split("/"))
    return not_offered(next(named, "Podium does not offer this here; see its README"))


def _stats(found: InstallationStats, day: date | None) -> Json:
    days = [each for each in found.days if day in {None, each.day}]
    waiting = sum(states.get(JobState.QUEUED, 0) for states in found.backlog.values())
    counted: Json = {
        "num_submissions": sum(each.submissions for each in days),
        "sub_waiting": waiting,
        "num_users": found.people,
    }
    return counted if day is not None else {**counted, **dict(_usage(found.usage))}


def _usage(usage: tuple[Usage, ...]) -> Iterator[tuple[str, object]]:
    ordered = sorted(usage, key=lambda each: each.gpu)
    for gpu, each in groupby(ordered, key=lambda used: used.gpu):
        of_gpu = list(each)
        yield f"num_run.{gpu}", sum(used.evaluations for used in of_gpu)
        yield f"total_runtime.{gpu}", f"PT{sum(used.seconds for used in of_gpu):.1f}S"
