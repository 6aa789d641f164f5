"""`/api/v1/admin`: bans, pauses, limits, quotas, moderation, finals, statistics, costs, audit."""

from dataclasses import asdict
from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request

from bot.domain.accounts import Caller
from bot.domain.api import admin as api
from bot.domain.api.base import BODY_MAX
from bot.domain.api.finals import FinalKey, FinalOrder, FinalsAnswer, FinalsCancelled
from bot.domain.api.submissions import Cancelled, SourceAnswer, SubmissionNumber
from bot.domain.board import Board
from bot.domain.costs import MOST_DAYS, Quota, QuotaKey
from bot.domain.errors import UserError
from bot.domain.finals import FinalRequest
from bot.domain.ids import AuditId, BoardId
from bot.domain.submission import RateLimit
from bot.ports import Store
from bot.services import finals, lookup, moderation, operations, submissions
from bot.services.audit import audit_rows
from bot.services.rules import submission_rules
from bot.web import auth, bodies
from bot.web.context import context_of
from bot.web.routes.api import openapi

router = APIRouter(
    prefix="/admin",
    tags=["admin"],
    dependencies=[Depends(openapi.uncached), Depends(auth.administrator)],
)


@router.get("/stats")
async def stats(request: Request) -> api.StatsAnswer:
    """Statistics: people, submissions a day, verdicts, the queue, and use of the GPUs."""
    context = context_of(request)
    totals = await operations.stats(context.store, context.clock)
    return api.StatsAnswer(
        people=totals.people,
        boards=totals.boards,
        days=tuple(api.DayAnswer(**asdict(each)) for each in totals.days),
        verdicts=dict(totals.verdicts),
        backlog={gpu: dict(states) for gpu, states in totals.backlog.items()},
        usage=api.UsageAnswer.of(totals.usage, totals.prices),
    )


@router.get("/costs")
async def costs(
    request: Request, *, days: Annotated[int, Query(ge=1, le=MOST_DAYS)] = 1
) -> api.CostsAnswer:
    """Who used how much GPU time, and what it cost: today, or on the last `days` days."""
    context = context_of(request)
    found = await operations.costs(context.store, context.clock, days)
    lines = api.UsageAnswer.of(found.usage, found.prices)
    return api.CostsAnswer(days=days, usage=lines, prices=dict(found.prices))


@router.get("/audit")
async def audit(
    request: Request, *, limit: openapi.PageLimit = 50, cursor: openapi.Cursor = None
) -> api.AuditAnswer:
    """The audit log: who decided what, when and why, newest first."""
    before = openapi.number_of(cursor)
    store = context_of(request).store
    entries = await audit_rows(store, limit + 1, None if before is None else AuditId(before))
    return api.AuditAnswer.of(entries, limit)


@router.get("/rules")
async def rules(request: Request) -> api.RulesAnswer:
    """Limits, quotas, pauses and bans as they are now."""
    return api.RulesAnswer.of(await submission_rules(context_of(request).store))


_DONE = 204


@router.post("/bans", openapi_extra=openapi.takes(api.BanOrder))
async def ban(request: Request, viewer: auth.MayAdminister) -> api.Stopped:
    """Ban a person from submitting, and stop their unfinished submissions."""
    body = await bodies.read(request, api.BanOrder, BODY_MAX)
    decision = _decision(viewer, body)
    stopped = await moderation.ban(_store(request), decision, body.identity, body.until)
    return api.Stopped(stopped=stopped)


@router.post("/bans/end", status_code=_DONE, openapi_extra=openapi.takes(api.PersonDecision))
async def unban(request: Request, viewer: auth.MayAdminister) -> None:
    """Let a person submit again."""
    body = await bodies.read(request, api.PersonDecision, BODY_MAX)
    await moderation.unban(_store(request), _decision(viewer, body), body.identity)


@router.post(
    "/submissions/{number}/cancel",
    openapi_extra=openapi.takes(api.DecisionBody, needed=False),
)
async def cancel(
    request: Request, number: openapi.SubmissionNumber, viewer: auth.MayAdminister
) -> Cancelled:
    """Stop any person's submission; its owner reads the reason."""
    body = await bodies.read_optional(request, api.DecisionBody, BODY_MAX)
    return Cancelled(
        stopped=await moderation.cancel(_store(request), _decision(viewer, body), number)
    )


@router.post(
    "/submissions/{number}/disqualify",
    status_code=_DONE,
    openapi_extra=openapi.takes(api.DecisionBody, needed=False),
)
async def disqualify(
    request: Request, number: openapi.SubmissionNumber, viewer: auth.MayAdminister
) -> None:
    """Take any person's submission off its board; its result stays."""
    body = await bodies.read_optional(request, api.DecisionBody, BODY_MAX)
    await moderation.disqualify(_store(request), _decision(viewer, body), number)


@router.post(
    "/submissions/{number}/requalify",
    status_code=_DONE,
    openapi_extra=openapi.takes(api.DecisionBody, needed=False),
)
async def requalify(
    request: Request, number: openapi.SubmissionNumber, viewer: auth.MayAdminister
) -> None:
    """Rank a submission again that was taken off its board."""
    body = await bodies.read_optional(request, api.DecisionBody, BODY_MAX)
    await moderation.requalify(_store(request), _decision(viewer, body), number)


@router.post(
    "/submissions/{number}/rejudge",
    status_code=201,
    openapi_extra=openapi.takes(api.DecisionBody, needed=False),
)
async def rejudge(
    request: Request, number: openapi.SubmissionNumber, viewer: auth.MayAdminister
) -> SubmissionNumber:
    """Judge a submission again with its board's current task; return the new one."""
    body = await bodies.read_optional(request, api.DecisionBody, BODY_MAX)
    decision = _decision(viewer, body)
    again = await submissions.rejudge_submission(_store(request), decision, number)
    return SubmissionNumber(id=again.id)


@router.post(
    "/submissions/{number}/look", openapi_extra=openapi.takes(api.DecisionBody, needed=False)
)
async def look(
    request: Request, number: openapi.SubmissionNumber, viewer: auth.MayAdminister
) -> SourceAnswer:
    """Read anyone's source; recorded in the audit log with the reason."""
    context = context_of(request)
    body = await bodies.read_optional(request, api.DecisionBody, BODY_MAX)
    decision = _decision(viewer, body)
    found = (await moderation.look(context.store, context.clock, decision, number)).source
    return SourceAnswer(submission=number, file_name=found.file_name, text=found.text)


@router.post("/pauses", status_code=_DONE, openapi_extra=openapi.takes(api.PauseDecision))
async def pause(request: Request, viewer: auth.MayAdminister) -> None:
    """Pause submissions to one board or to all, or the jobs of a GPU type."""
    body = await bodies.read(request, api.PauseDecision, BODY_MAX)
    store, decision = _store(request), _decision(viewer, body)
    match await _pause_target(store, viewer, body):
        case Board() as board:
            await moderation.pause_board(store, decision, board)
        case str() as gpu:
            await moderation.pause_gpu(store, decision, gpu)
        case None:
            await moderation.pause(store, decision)


@router.post("/pauses/end", status_code=_DONE, openapi_extra=openapi.takes(api.PauseDecision))
async def resume(request: Request, viewer: auth.MayAdminister) -> None:
    """End this pause; other pauses stay."""
    body = await bodies.read(request, api.PauseDecision, BODY_MAX)
    store, decision = _store(request), _decision(viewer, body)
    match await _pause_target(store, viewer, body):
        case Board() as board:
            await moderation.resume_board(store, decision, board)
        case str() as gpu:
            await moderation.resume_gpu(store, decision, gpu)
        case None:
            await moderation.resume(store, decision)


@router.put("/limits", status_code=_DONE, openapi_extra=openapi.takes(api.LimitOrder))
async def limit(request: Request, viewer: auth.MayAdminister) -> None:
    """Limit everyone's submissions of one board and mode, or of all; or those of one person."""
    body = await bodies.read(request, api.LimitOrder, BODY_MAX)
    store = _store(request)
    board = await _board(store, viewer, body.board)
    window, until = timedelta(seconds=body.window_s), body.until
    rate_limit = RateLimit(body.most, window, board, body.mode, until=until)
    await moderation.set_limit(store, _decision(viewer, body), rate_limit, body.identity)


@router.post("/limits/end", status_code=_DONE, openapi_extra=openapi.takes(api.LimitKey))
async def unlimit(request: Request, viewer: auth.MayAdminister) -> None:
    """End the limit of exactly this board, mode and person; other limits stay."""
    body = await bodies.read(request, api.LimitKey, BODY_MAX)
    store = _store(request)
    board = await _board(store, viewer, body.board)
    decision = _decision(viewer, body)
    await moderation.drop_limit(store, decision, board, body.mode, identity=body.identity)


@router.put("/quotas", status_code=_DONE, openapi_extra=openapi.takes(api.QuotaOrder))
async def set_quota(request: Request, viewer: auth.MayAdminister) -> None:
    """Limit the GPU time of a day: of each person, of all together, or of one person."""
    body = await bodies.read(request, api.QuotaOrder, BODY_MAX)
    store = _store(request)
    quota = Quota(await _quota_key(store, viewer, body), body.most)
    await moderation.set_quota(store, _decision(viewer, body), quota, body.identity)


@router.post("/quotas/end", status_code=_DONE, openapi_extra=openapi.takes(api.QuotaBody))
async def drop_quota(request: Request, viewer: auth.MayAdminister) -> None:
    """End exactly this quota; other quotas stay."""
    body = await bodies.read(request, api.QuotaBody, BODY_MAX)
    store = _store(request)
    key = await _quota_key(store, viewer, body)
    await moderation.drop_quota(store, _decision(viewer, body), key, body.identity)


@router.post(
    "/finals",
    status_code=201,
    openapi_extra=openapi.takes(FinalOrder),
)
async def start_final(request: Request, viewer: auth.MayAdminister) -> FinalsAnswer:
    """Compare the first entries of a board, each with the one before."""
    body = await bodies.read(request, FinalOrder, BODY_MAX)
    wanted = FinalRequest(body.board, body.gpu, body.top)
    started = await finals.start_final(_store(request), viewer, _decision(viewer, body), wanted)
    return FinalsAnswer.of(body.board, started)


@router.post(
    "/finals/cancel",
    openapi_extra=openapi.takes(FinalKey),
)
async def cancel_final(request: Request, viewer: auth.MayAdminister) -> FinalsCancelled:
    """Cancel the running finals of a board; its standings stay as they are."""
    body = await bodies.read(request, FinalKey, BODY_MAX)
    return FinalsCancelled(
        cancelled=await finals.cancel_final(
            _store(request), viewer, _decision(viewer, body), body.board
        )
    )


def _store(request: Request) -> Store:
    return context_of(request).store


def _decision(viewer: Caller, body: api.DecisionBody) -> moderation.Decision:
    return moderation.Decision(viewer.person, body.reason)


async def _pause_target(
    store: Store, viewer: Caller, body: api.PauseDecision
) -> Board | str | None:
    if body.board is not None and body.gpu is not None:
        raise UserError("two-things", "name a board or a GPU type, not both")
    return body.gpu if body.board is None else await lookup.find_board(store, viewer, body.board)


async def _board(store: Store, viewer: Caller, name: str | None) -> BoardId | None:
    return None if name is None else (await lookup.find_board(store, viewer, name)).id


async def _quota_key(store: Store, viewer: Caller, body: api.QuotaBody) -> QuotaKey:
    return QuotaKey(body.unit, body.each_person, await _board(store, viewer, body.board), body.gpu)
