"""`/queue`: what waits, what runs, and who judges, as it changes."""

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse

from bot.reports.admin import workers_report
from bot.reports.blocks import Block, Table
from bot.services.operations import pools
from bot.services.workers import NAMELESS, numbered
from bot.web.auth import AnyViewer
from bot.web.context import WebContext, context_of
from bot.web.rendering import draw, page
from bot.web.sse import TICK_S, Part, live

router = APIRouter()


@router.get("/queue")
async def queue(request: Request, viewer: AnyViewer) -> Response:
    """The queue by GPU type, and the workers that live."""
    values = {"title": "Queue and runners", "now_shown": (await _part(context_of(request)))[0]}
    return await page(request, viewer, "queue.html", values)


@router.get("/queue/events")
async def queue_events(request: Request) -> StreamingResponse:
    """The same, whenever it has changed."""
    door = context_of(request)
    return live(door, lambda: _part(door))


def _steady(block: Block) -> Block:
    """Without what changes by the second: who is listed was seen within its lease."""
    if not isinstance(block, Table):
        return block
    kept = [place for place, each in enumerate(block.columns) if each.name != "seen"]
    columns = tuple(block.columns[place] for place in kept)
    rows = tuple(tuple(row[place] for place in kept) for row in block.rows)
    return Table(block.title, columns, rows)


async def _part(door: WebContext) -> Part:
    """One reading for everybody who watches."""

    async def make() -> Part:
        workers = workers_report(
            numbered(await door.store.workers.alive(), NAMELESS), door.clock.now()
        )
        blocks = [_steady(each) for each in workers.blocks]
        values = {"pools": await pools(door.store), "workers": blocks}
        return draw("parts/queue.html", values), False

    return await door.kept.get("queue", TICK_S, make)
