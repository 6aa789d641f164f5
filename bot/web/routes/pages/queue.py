"""`/queue`: running and waiting jobs, and the workers; updates itself."""

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse

from bot.domain.board import NOBODY, Board, Viewer
from bot.reports import admin
from bot.reports.blocks import Block, Table
from bot.services import operations
from bot.web import auth, rendering
from bot.web.context import WebContext, context_of

router = APIRouter()
OWN_FRESH_S = 5.0
"""How long a list with all jobs of a person is reused: the database numbers the whole queue."""


@router.get("/queue")
async def queue(request: Request, viewer: auth.AnyViewer) -> Response:
    """Show the queue by GPU type, whose jobs run and wait, and the live workers."""
    part, _ = await _part(context_of(request), viewer)
    values = {"title": "Queue and runners", "now_shown": part}
    return await rendering.page(request, viewer, "queue.html", values)


@router.get("/queue/events")
async def queue_events(request: Request, viewer: auth.AnyViewer) -> StreamingResponse:
    """Stream the changing part of that page."""
    context = context_of(request)
    return rendering.live(
        context, lambda: _part(context, viewer), lambda: auth.has_same_viewer(request, viewer)
    )


def _without_last_seen(block: Block) -> Block:
    """Remove a table's column `seen`, which changes every second."""
    if not isinstance(block, Table):
        return block
    indices = [index for index, each in enumerate(block.columns) if each.name != "seen"]
    columns = tuple(block.columns[index] for index in indices)
    rows = tuple(tuple(row[index] for index in indices) for row in block.rows)
    return Table(block.title, columns, rows)


async def _part(context: WebContext, viewer: Viewer) -> rendering.Part:
    """Return the changing part of the page, without details of jobs that the viewer may not see.

    The jobs are read once for all viewers, and rendered once for all who may see the same jobs.
    """
    pools = await context.cache.get(
        "queue-pools", rendering.TICK_S, lambda: operations.gpu_queues(context.store)
    )
    most = max((count for each in pools for count in (each.running, each.queued)), default=0)
    jobs = await _jobs(context, viewer, is_cut=most > operations.LISTED_JOBS)
    known = tuple(operations.may_know(viewer, each) for each in jobs)
    notice, pauses = await context.cache.get("pauses", rendering.TICK_S, lambda: _pauses(context))
    paused = tuple((each.name, why) for each, why in pauses if each.visible_to(viewer))
    own = viewer.person if any(each.job.person == viewer.person for each in jobs) else None

    async def make() -> rendering.Part:
        alive = await context.store.workers.alive()
        workers = admin.workers_report(
            operations.number_workers(alive, operations.NAMELESS), context.clock.now()
        )
        values = {
            "pools": pools,
            "workers": [_without_last_seen(each) for each in workers.blocks],
            "jobs": list(zip(jobs, known, strict=True)),
            "own": own,
            "notice": notice,
            "paused": paused,
            "most": operations.LISTED_JOBS,
        }
        return rendering.render("parts/queue.html", values), False

    return await context.cache.get(
        ("queue", pools, jobs, known, own, notice, paused), rendering.TICK_S, make
    )


async def _jobs(
    context: WebContext, viewer: Viewer, *, is_cut: bool
) -> tuple[operations.JobEstimate, ...]:
    """Return the listed jobs; if some are cut off, also all of the viewer's own."""
    store, clock, person = context.store, context.clock, viewer.person
    if is_cut and person != NOBODY and await store.jobs.unfinished_of(person):
        key = ("queue-jobs", person)
        return await context.cache.get(
            key, OWN_FRESH_S, lambda: operations.job_estimates(store, clock, person)
        )
    return await context.cache.get(
        "queue-jobs", rendering.TICK_S, lambda: operations.job_estimates(store, clock)
    )


async def _pauses(context: WebContext) -> tuple[str | None, tuple[tuple[Board, str], ...]]:
    """Return why no submissions are accepted, if so, and each paused board with the reason."""
    store = context.store
    boards = {each.id: each for each in await store.boards.all()}
    paused = (await store.moderation.board_pauses()).items()
    found = tuple((boards[board], why) for board, why in paused if board in boards)
    return await store.moderation.pause_notice(), found
