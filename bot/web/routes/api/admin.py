"""`/admin`: what only admins are told."""

from fastapi import APIRouter, Depends, Request

from bot.domain.api.admin import (
    AuditAnswer,
    BanAnswer,
    DayAnswer,
    DecisionAnswer,
    LimitAnswer,
    RulesAnswer,
    StatsAnswer,
    UsageAnswer,
)
from bot.domain.ids import AuditId
from bot.domain.prices import cost
from bot.domain.records import NamedAuditEntry, NamedLimit
from bot.services.audit import audit_rows
from bot.services.house_rules import house_rules
from bot.services.stats import stats as counts
from bot.web.auth import administrator
from bot.web.context import door_of
from bot.web.routes.api.arguments import Cursor, PageLimit, number_of
from bot.web.routes.api.bodies import unkept

router = APIRouter(
    prefix="/admin", tags=["admin"], dependencies=[Depends(unkept), Depends(administrator)]
)


@router.get("/stats")
async def stats(request: Request) -> StatsAnswer:
    """What goes on: people, submissions a day, verdicts, the queue, and use of the GPUs."""
    door = door_of(request)
    found = await counts(door.store, door.clock, door.prices)
    days = (
        DayAnswer(day=each.day, submissions=each.submissions, people=each.people)
        for each in found.days
    )
    usage = (
        UsageAnswer(
            board=each.board,
            person=each.person,
            gpu=each.gpu,
            evaluations=each.evaluations,
            seconds=each.seconds,
            cost=cost(found.prices, each.gpu, each.seconds),
        )
        for each in found.usage
    )
    return StatsAnswer(
        people=found.people,
        boards=found.boards,
        days=tuple(days),
        verdicts=dict(found.verdicts),
        backlog={gpu: dict(states) for gpu, states in found.backlog.items()},
        usage=tuple(usage),
    )


@router.get("/audit")
async def audit(request: Request, *, limit: PageLimit = 50, cursor: Cursor = None) -> AuditAnswer:
    """Who decided what, when and why, newest first."""
    before = number_of(cursor)
    store = door_of(request).store
    found = await audit_rows(store, limit + 1, None if before is None else AuditId(before))
    more = len(found) > limit
    return AuditAnswer(
        decisions=tuple(_decision(each) for each in found[:limit]),
        next=str(found[limit - 1].row.id) if more else None,
    )


@router.get("/rules")
async def rules(request: Request) -> RulesAnswer:
    """Limits, pauses and bans as they are now."""
    found = await house_rules(door_of(request).store)
    return RulesAnswer(
        limits=tuple(_limit(each) for each in found.limits),
        pause=found.pause,
        boards=found.boards,
        gpus=found.gpus,
        bans=tuple(
            BanAnswer(identity=person.identity, name=person.name, reason=why)
            for person, why in found.bans
        ),
    )


def _decision(decision: NamedAuditEntry) -> DecisionAnswer:
    row = decision.row
    return DecisionAnswer(
        actor=decision.actor_name,
        action=row.action,
        subject=row.subject,
        reason=row.reason,
        at=row.at,
    )


def _limit(named: NamedLimit) -> LimitAnswer:
    limit = named.limit
    return LimitAnswer(
        board=named.board,
        mode=limit.mode,
        most=limit.most,
        window_s=limit.window.total_seconds(),
    )
