"""`/runners` and `/queue`: live workers, and waiting jobs."""

from fastapi import APIRouter, Depends, Request

from bot.domain.api.admin import PoolAnswer, QueueAnswer, RunnerAnswer, RunnersAnswer
from bot.services.operations import gpu_queues, workers_for
from bot.web.auth import AnyViewer, viewer_of
from bot.web.context import context_of
from bot.web.routes.api.openapi import uncached

router = APIRouter(tags=["running"], dependencies=[Depends(uncached), Depends(viewer_of)])


@router.get("/runners")
async def runners(request: Request, viewer: AnyViewer) -> RunnersAnswer:
    """The connected workers, and what they offer.

    Admins, and people who made a worker's token, see workers' names; other people see numbers.
    """
    context = context_of(request)
    answers = (
        RunnerAnswer(
            name=each.name,
            gpus=each.gpus,
            running=each.running,
            seen_at=each.seen_at,
            offers=dict(each.offers),
        )
        for each in await workers_for(context.store, viewer)
    )
    return RunnersAnswer(now=context.clock.now(), runners=tuple(answers))


@router.get("/queue")
async def queue(request: Request) -> QueueAnswer:
    """How many jobs wait and run, by GPU type."""
    store = context_of(request).store
    answers = (
        PoolAnswer(
            gpu=each.gpu,
            queued=each.queued,
            running=each.running,
            workers=each.workers,
            paused=each.paused,
        )
        for each in await gpu_queues(store)
    )
    return QueueAnswer(paused=await store.moderation.pause_notice(), pools=tuple(answers))
