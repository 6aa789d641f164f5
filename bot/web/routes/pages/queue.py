"""`/queue`: waiting and running jobs, and the workers; updates itself."""

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse

from bot.reports.admin import workers_report
from bot.reports.blocks import Block, Table
from bot.services.operations import NAMELESS, gpu_queues, number_workers
from bot.web.auth import AnyViewer
from bot.web.context import WebContext, context_of
from bot.web.rendering import TICK_S, Part, draw, live, page

router = APIRouter()


@router.get("/queue")
async def queue(request: Request, viewer: AnyViewer) -> Response:
    """Show the queue by GPU type, and the live workers."""
    values = {"title": "Queue and runners", "now_shown": (await _part(context_of(request)))[0]}
    return await page(request, viewer, "queue.html", values)


@router.get("/queue/events")
async def queue_events(request: Request) -> StreamingResponse:
    """Stream the same page part after each change."""
    door = context_of(request)
    return live(door, lambda: _part(door))


def _steady(block: Block) -> Block:
    """Remove what changes every second: everyone listed was seen within their lease."""
    if not isinstance(block, Table):
        return block
    kept = [place for place, each in enumerate(block.columns) if each.name != "seen"]
    columns = tuple(block.columns[place] for place in kept)
    rows = tuple(tuple(row[place] for place in kept) for row in block.rows)
    return Table(block.title, columns, rows)


async def _part(door: WebContext) -> Part:
    """Return the part, read once for all watchers."""

    async def make() -> Part:
        workers = workers_report(
            number_workers(await door.store.workers.alive(), NAMELESS), door.clock.now()
        )
        blocks = [_steady(each) for each in workers.blocks]
        values = {"pools": await gpu_queues(door.store), "workers": blocks}
        return draw("parts/queue.html", values), False

    return await door.kept.get("queue", TICK_S, make)
