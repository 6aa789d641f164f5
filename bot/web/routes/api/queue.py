"""`/runners` and `/queue`: live workers, and waiting jobs."""

from fastapi import APIRouter, Depends, Request

from bot.domain.api.admin import PoolAnswer, QueueAnswer, RunnerAnswer, RunnersAnswer
from bot.services.operations import gpu_queues, workers_for
from bot.web.auth import AnyViewer, viewer_of
from bot.web.context import context_of
from bot.web.routes.api.openapi import unkept

router = APIRouter(tags=["running"], dependencies=[Depends(unkept), Depends(viewer_of)])


@router.get("/runners")
async def runners(request: Request, viewer: AnyViewer) -> RunnersAnswer:
    """The workers that live, here and elsewhere, and what they offer.

    Names of workers are for admins and for anyone who made a worker's token; others get numbers.
    """
    door = context_of(request)
    found = (
        RunnerAnswer(
            name=each.name,
            gpus=each.gpus,
            running=each.running,
            seen_at=each.seen_at,
            offers=dict(each.offers),
        )
        for each in await workers_for(door.store, viewer)
    )
    return RunnersAnswer(now=door.clock.now(), runners=tuple(found))


@router.get("/queue")
async def queue(request: Request) -> QueueAnswer:
    """How many jobs wait and run, by GPU type."""
    store = context_of(request).store
    found = (
        PoolAnswer(
            gpu=each.gpu,
            queued=each.queued,
            running=each.running,
            workers=each.workers,
            paused=each.paused,
        )
        for each in await gpu_queues(store)
    )
    return QueueAnswer(paused=await store.moderation.pause_notice(), pools=tuple(found))
