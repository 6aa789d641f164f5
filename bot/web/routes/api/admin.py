"""`/api/v1/admin`: decisions, limits, statistics, the audit."""

from datetime import timedelta

from fastapi import APIRouter, Depends, Request

from bot.domain.accounts import Caller
from bot.domain.api import admin as api
from bot.domain.api.base import BODY_MAX
from bot.domain.api.submissions import Numbered
from bot.domain.board import Board
from bot.domain.errors import UserError
from bot.domain.ids import AuditId, BoardId
from bot.domain.status import cost
from bot.domain.submission import RateLimit
from bot.ports import Store
from bot.services import lookup, moderation, operations
from bot.services.audit import audit_rows
from bot.services.submissions import rejudge_submission as judge_again
from bot.web.auth import MayAdminister, administrator
from bot.web.bodies import read, read_optional
from bot.web.context import context_of
from bot.web.routes.api.openapi import Cursor, PageLimit, SubmissionNumber, number_of, takes, unkept

router = APIRouter(
    prefix="/admin", tags=["admin"], dependencies=[Depends(unkept), Depends(administrator)]
)


@router.get("/stats")
async def stats(request: Request) -> api.StatsAnswer:
    """What goes on: people, submissions a day, verdicts, the queue, and use of the GPUs."""
    door = context_of(request)
    found = await operations.stats(door.store, door.clock, door.prices)
    days = (
        api.DayAnswer(day=each.day, submissions=each.submissions, people=each.people)
        for each in found.days
    )
    usage = (
        api.UsageAnswer(
            board=each.board,
            person=each.person,
            gpu=each.gpu,
            evaluations=each.evaluations,
            seconds=each.seconds,
            cost=cost(found.prices, each.gpu, each.seconds),
        )
        for each in found.usage
    )
    return api.StatsAnswer(
        people=found.people,
        boards=found.boards,
        days=tuple(days),
        verdicts=dict(found.verdicts),
        backlog={gpu: dict(states) for gpu, states in found.backlog.items()},
        usage=tuple(usage),
    )


@router.get("/audit")
async def audit(
    request: Request, *, limit: PageLimit = 50, cursor: Cursor = None
) -> api.AuditAnswer:
    """Who decided what, when and why, newest first."""
    before = number_of(cursor)
    store = context_of(request).store
    found = await audit_rows(store, limit + 1, None if before is None else AuditId(before))
    more = len(found) > limit
    return api.AuditAnswer(
        decisions=tuple(
            api.DecisionAnswer(
                actor=each.actor_name,
                action=each.entry.action,
                subject=each.entry.subject,
                reason=each.entry.reason,
                at=each.entry.at,
            )
            for each in found[:limit]
        ),
        next=str(found[limit - 1].entry.id) if more else None,
    )


@router.get("/rules")
async def rules(request: Request) -> api.RulesAnswer:
    """Limits, pauses and bans as they are now."""
    found = await moderation.submission_rules(context_of(request).store)
    return api.RulesAnswer(
        limits=tuple(
            api.LimitAnswer(
                board=each.board,
                mode=each.limit.mode,
                most=each.limit.most,
                window_s=each.limit.window.total_seconds(),
            )
            for each in found.limits
        ),
        pause=found.pause,
        boards=found.boards,
        gpus=found.gpus,
        bans=tuple(
            api.BanAnswer(identity=person.identity, name=person.name, reason=why)
            for person, why in found.bans
        ),
    )


_DONE = 204


@router.post("/bans", openapi_extra=takes(api.PersonDecision))
async def ban(request: Request, viewer: MayAdminister) -> api.Stopped:
    """Keep a person from submitting, and stop what is unfinished."""
    body = await read(request, api.PersonDecision, BODY_MAX)
    stopped = await moderation.ban(_store(request), _deed(viewer, body), body.identity)
    return api.Stopped(stopped=stopped)


@router.post("/bans/end", status_code=_DONE, openapi_extra=takes(api.PersonDecision))
async def unban(request: Request, viewer: MayAdminister) -> None:
    """Let a person submit again."""
    body = await read(request, api.PersonDecision, BODY_MAX)
    await moderation.unban(_store(request), _deed(viewer, body), body.identity)


@router.post(
    "/submissions/{number}/disqualify",
    status_code=_DONE,
    openapi_extra=takes(api.DecisionBody, needed=False),
)
async def disqualify(request: Request, number: SubmissionNumber, viewer: MayAdminister) -> None:
    """Take anybody's submission off its board; its result stays."""
    body = await read_optional(request, api.DecisionBody, BODY_MAX)
    await moderation.disqualify(_store(request), _deed(viewer, body), number)


@router.post(
    "/submissions/{number}/requalify",
    status_code=_DONE,
    openapi_extra=takes(api.DecisionBody, needed=False),
)
async def requalify(request: Request, number: SubmissionNumber, viewer: MayAdminister) -> None:
    """Rank a submission again that was taken off its board."""
    body = await read_optional(request, api.DecisionBody, BODY_MAX)
    await moderation.requalify(_store(request), _deed(viewer, body), number)


@router.post(
    "/submissions/{number}/rejudge",
    status_code=201,
    openapi_extra=takes(api.DecisionBody, needed=False),
)
async def rejudge(request: Request, number: SubmissionNumber, viewer: MayAdminister) -> Numbered:
    """Judge a submission once more by its board's present task; gives the new one."""
    body = await read_optional(request, api.DecisionBody, BODY_MAX)
    return Numbered(id=(await judge_again(_store(request), _deed(viewer, body), number)).id)


@router.post("/pauses", status_code=_DONE, openapi_extra=takes(api.PauseDecision))
async def pause(request: Request, viewer: MayAdminister) -> None:
    """Take no submissions, to one board or to any; or begin no jobs of a GPU type."""
    body = await read(request, api.PauseDecision, BODY_MAX)
    store, deed = _store(request), _deed(viewer, body)
    match await _named(store, viewer, body):
        case Board() as board:
            await moderation.pause_board(store, deed, board)
        case str() as gpu:
            await moderation.pause_gpu(store, deed, gpu)
        case None:
            await moderation.pause(store, deed)


@router.post("/pauses/end", status_code=_DONE, openapi_extra=takes(api.PauseDecision))
async def resume(request: Request, viewer: MayAdminister) -> None:
    """End just this pause; others stay."""
    body = await read(request, api.PauseDecision, BODY_MAX)
    store, deed = _store(request), _deed(viewer, body)
    match await _named(store, viewer, body):
        case Board() as board:
            await moderation.resume_board(store, deed, board)
        case str() as gpu:
            await moderation.resume_gpu(store, deed, gpu)
        case None:
            await moderation.resume(store, deed)


@router.put("/limits", status_code=_DONE, openapi_extra=takes(api.LimitOrder))
async def limit(request: Request, viewer: MayAdminister) -> None:
    """Limit everyone's submissions of one board and mode, or of all."""
    body = await read(request, api.LimitOrder, BODY_MAX)
    store = _store(request)
    board = await _board(store, viewer, body.board)
    window = timedelta(seconds=body.window_s)
    found = RateLimit(body.most, window, board, body.mode)
    await moderation.set_limit(store, _deed(viewer, body), found)


@router.post("/limits/end", status_code=_DONE, openapi_extra=takes(api.LimitKey))
async def unlimit(request: Request, viewer: MayAdminister) -> None:
    """End the limit of just this board and mode."""
    body = await read(request, api.LimitKey, BODY_MAX)
    store = _store(request)
    board = await _board(store, viewer, body.board)
    await moderation.drop_limit(store, _deed(viewer, body), board, body.mode)


def _store(request: Request) -> Store:
    return context_of(request).store


def _deed(viewer: Caller, body: api.DecisionBody) -> moderation.Decision:
    return moderation.Decision(viewer.person, body.reason)


async def _named(store: Store, viewer: Caller, body: api.PauseDecision) -> Board | str | None:
    if body.board is not None and body.gpu is not None:
        raise UserError("two-things", "name a board or a GPU type, not both")
    return body.gpu if body.board is None else await lookup.find_board(store, viewer, body.board)


async def _board(store: Store, viewer: Caller, name: str | None) -> BoardId | None:
    return None if name is None else (await lookup.find_board(store, viewer, name)).id
