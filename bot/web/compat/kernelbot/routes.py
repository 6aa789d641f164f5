"""`/popcorn`: all routes, including those for sign-in, for admins, and for missing features.

`POPCORN_ADMIN_TOKEN` is a token of scope admin. If Podium does something in another way, the
response is 501 with an explanation.
"""

import secrets
from collections.abc import Sequence
from http import HTTPMethod, HTTPStatus
from itertools import groupby

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute
from pydantic import ConfigDict
from starlette.exceptions import HTTPException

from bot.domain.errors import UserError
from bot.domain.ids import SubmissionId
from bot.domain.job import JobState
from bot.services import invites, moderation, operations, status
from bot.web import auth, bodies, errors, limits
from bot.web.compat.kernelbot import boards, submissions
from bot.web.compat.kernelbot.http import (
    TOKEN_HELP,
    FromSubmitter,
    Json,
    Route,
    json_response,
    not_offered,
)
from bot.web.context import context_of
from runners.contract.wire import Wire

account = APIRouter(route_class=Route)


_MOST_CODE = 4 << 10


class InviteCode(Wire):
    """What popcorn-cli sends to join a board."""

    model_config = ConfigDict(extra="ignore")

    code: str


@account.get("/health")
async def health() -> Response:
    """Respond that the process is alive."""
    return json_response({"status": "ok"})


@account.get("/auth/init")
@account.get("/auth/cli/{provider}")
async def begin() -> Response:
    """Refuse to sign in: popcorn-cli has another server's addresses built in.

    After a success it would overwrite `~/.popcorn.yaml` at once, so the explanation is an error,
    which it prints.
    """
    message = (
        "popcorn-cli can only sign in at the server that is built into it, so there is no "
        f"`register` here: {TOKEN_HELP}"
    )
    return json_response({"state": secrets.token_urlsafe(16), "detail": message}, 501)


@account.post("/user/join")
async def join(request: Request, person: FromSubmitter) -> Response:
    """Invite the person to the board of an invite code."""
    wanted = await bodies.read(request, InviteCode, _MOST_CODE)
    board = await invites.join_board(context_of(request).store, person, wanted.code)
    return json_response({"status": "ok", "leaderboards": [board.name]})


administration = APIRouter(prefix="/admin", route_class=Route)

_REASON = "by popcorn-cli"
_ELSEWHERE = {
    "rate-limits": "limits on submissions are set by PUT /api/v1/admin/limits, or on Discord",
    "visibility": "who may see a board is changed by PATCH /api/v1/leaderboards/NAME",
    "submission": "a board closes at its deadline; to open it again, change the deadline by "
    "PATCH /api/v1/leaderboards/NAME",
    "submissions": "submissions are taken off one by one: DELETE /admin/submissions/N; all of a "
    "board are in GET /api/v1/leaderboards/NAME/export",
    "application-validations": "every ranked answer is checked when it is timed; there is no later "
    "validation",
    "invites": "a board's creator makes invite links on its page /edit/NAME, and invites people by "
    "their names with /leaderboard invite on Discord",
    "update-problems": "a competition is published by `podium task publish SET.yaml`",
    "leaderboards": "boards are made by `podium task publish DIR` or /leaderboard create on "
    "Discord, and deleted by /leaderboard delete, which first sends the sources",
    "ban": "people are banned by /admin ban on Discord",
    "export-hf": "a board is exported by /admin export on Discord",
}


@administration.post("/start")
async def start(request: Request, admin: auth.MayAdminister) -> Response:
    """Resume taking submissions."""
    try:
        await moderation.resume(
            context_of(request).store, moderation.Decision(admin.person, _REASON)
        )
    except UserError as error:
        if error.code != "not-paused":  # repeating it is not an error
            raise
    return json_response({"status": "ok", "accepts_jobs": True})


@administration.post("/stop")
async def stop(request: Request, admin: auth.MayAdminister) -> Response:
    """Stop taking submissions; stored ones are still judged."""
    await moderation.pause(
        context_of(request).store, moderation.Decision(admin.person, "paused by an admin")
    )
    return json_response({"status": "ok", "accepts_jobs": False})


@administration.get("/stats")
async def counts(
    request: Request,
    admin: auth.MayAdminister,  # noqa: ARG001 - for its rights
    *,
    last_day_only: bool = False,
) -> Response:
    """Statistics of today, or of the last two weeks with GPU usage."""
    context = context_of(request)
    totals = await operations.stats(context.store, context.clock)
    today = context.clock.now().date() if last_day_only else None
    days = [each for each in totals.days if today in {None, each.day}]
    counted: Json = {
        "num_submissions": sum(each.submissions for each in days),
        "sub_waiting": sum(each.get(JobState.QUEUED, 0) for each in totals.backlog.values()),
        "num_users": totals.people,
    }
    if today is None:
        ordered = sorted(totals.usage, key=lambda used: used.gpu)
        for gpu, usage in groupby(ordered, key=lambda used: used.gpu):
            of_gpu = list(usage)
            counted[f"num_run.{gpu}"] = sum(used.evaluations for used in of_gpu)
            counted[f"total_runtime.{gpu}"] = f"PT{sum(used.seconds for used in of_gpu):.1f}S"
    return json_response({"status": "ok", "stats": counted})


@administration.get("/submissions/{number}")
async def one(request: Request, admin: auth.MayAdminister, number: submissions.Number) -> Response:
    """Any person's submission; its source only if the board shows sources to others."""
    context = context_of(request)
    reading = await status.read_submission(
        context.store, context.clock, admin, SubmissionId(number)
    )
    details = await submissions.details(context, admin, reading)
    job = details.pop("job")
    return json_response(
        {"status": "ok", "submission": {"submission_id": number, **details, "job": job}}
    )


@administration.delete("/submissions/{number}")
async def disqualify(
    request: Request, admin: auth.MayAdminister, number: submissions.Number
) -> Response:
    """Disqualify any person's submission; it is kept with its result."""
    store = context_of(request).store
    await moderation.disqualify(
        store, moderation.Decision(admin.person, _REASON), SubmissionId(number)
    )
    return json_response({"status": "ok", "submission_id": number})


@administration.api_route("/{path:path}", methods=["DELETE", "GET", "POST", "PUT"])
async def other(admin: auth.MayAdminister, path: str) -> Response:  # noqa: ARG001 - for its rights
    """Refuse all other actions, which are done elsewhere."""
    explanations = (words for part, words in _ELSEWHERE.items() if part in path.split("/"))
    return not_offered(next(explanations, "Podium does not offer this here; see its README"))


def _rest_of(others: Sequence[APIRouter]) -> APIRouter:
    """Return a router for every path that the others do not have; must be included last."""
    routes = [each for other in others for each in other.routes if isinstance(each, APIRoute)]
    router = APIRouter(route_class=Route)

    async def elsewhere(path: str, request: Request) -> Response:
        """404, or 405 for another method of an existing path."""
        allowed = {
            method
            for route in routes
            if route.path_regex.match(f"/{path}")
            for method in route.methods or ()
        }
        if allowed:
            raise errors.MethodError(allowed)
        if request.url.path.endswith("/") or "//" in request.url.path:
            words = "there is nothing at this address; remove the / at the end of POPCORN_API_URL"
            raise UserError("unknown-address", words)
        raise HTTPException(HTTPStatus.NOT_FOUND)

    router.add_api_route("/{path:path}", elsewhere, methods=[each.value for each in HTTPMethod])
    return router


# The last route of `submissions` has three free path segments, so it must come after all others.
_PARTS = (account, boards.router, administration, submissions.router)
router = APIRouter(prefix=limits.POPCORN, include_in_schema=False)
for part in (*_PARTS, _rest_of(_PARTS)):
    router.include_router(part)
