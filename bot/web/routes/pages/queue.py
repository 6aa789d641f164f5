"""`/queue`: waiting and running jobs, and the workers; updates itself."""

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse

from bot.reports import admin
from bot.reports.blocks import Block, Table
from bot.services.operations import NAMELESS, gpu_queues, number_workers
from bot.web import auth, rendering
from bot.web.context import WebContext, context_of

router = APIRouter()


@router.get("/queue")
async def queue(request: Request, viewer: auth.AnyViewer) -> Response:
    """Show the queue by GPU type, and the live workers."""
    values = {"title": "Queue and runners", "now_shown": (await _part(context_of(request)))[0]}
    return await rendering.page(request, viewer, "queue.html", values)


@router.get("/queue/events")
async def queue_events(request: Request) -> StreamingResponse:
    """Stream the changing part of that page."""
    context = context_of(request)
    return rendering.live(context, lambda: _part(context))


def _without_last_seen(block: Block) -> Block:
    """Remove a table's column `seen`, which changes every second."""
    if not isinstance(block, Table):
        return block
    indices = [index for index, each in enumerate(block.columns) if each.name != "seen"]
    columns = tuple(block.columns[index] for index in indices)
    rows = tuple(tuple(row[index] for index in indices) for row in block.rows)
    return Table(block.title, columns, rows)


async def _part(context: WebContext) -> rendering.Part:
    """Return the changing part of the page, which is read once for all viewers."""

    async def make() -> rendering.Part:
        workers = admin.workers_report(
            number_workers(await context.store.workers.alive(), NAMELESS), context.clock.now()
        )
        blocks = [_without_last_seen(each) for each in workers.blocks]
        values = {"pools": await gpu_queues(context.store), "workers": blocks}
        return rendering.render("parts/queue.html", values), False

    return await context.cache.get("queue", rendering.TICK_S, make)
