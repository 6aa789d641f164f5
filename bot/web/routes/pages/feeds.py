"""Pages for other programs: the feed of a board's records, a competition's dates as a calendar.

Also the files that browsers and search engines request by a fixed name.
"""

from urllib.parse import quote

from fastapi import APIRouter, Request, Response

from bot.reports.competition import schedule_calendar
from bot.services.competitions import find_competition
from bot.services.history import records_of
from bot.web import auth, rendering
from bot.web.context import address_of, context_of

router = APIRouter()
_ATOM, _CALENDAR = "application/atom+xml; charset=utf-8", "text/calendar; charset=utf-8"
_MOST = 50
"""The most records in a feed, the newest."""
FRESH_S = 15.0
"""How many seconds a feed is reused, because making it reads many runs."""


@router.get("/boards/{name}/records.atom")
async def records(request: Request, name: str, viewer: auth.AnyViewer) -> Response:
    """Return the records of a board on each of its GPU types as a feed (RFC 4287)."""
    context, address = context_of(request), address_of(request)

    async def make() -> rendering.RenderedPage:
        board, found = await records_of(context.store, context.clock, viewer, name)
        values = {"board": board, "records": found[:_MOST], "address": address}
        return rendering.RenderedPage.of(rendering.render("records.atom", values), _ATOM)

    feed = await context.cache.get(("records", viewer, name, address), FRESH_S, make)
    return rendering.page_response(request, feed)


@router.get("/competitions/{name}/schedule.ics")
async def schedule(request: Request, name: str, viewer: auth.AnyViewer) -> Response:
    """Return the dates of a competition's boards as a calendar."""
    context, address = context_of(request), address_of(request)
    found = await find_competition(context.store, context.clock, viewer, name)
    text = schedule_calendar(
        found, context.clock.now(), lambda kind, each: f"{address}/{kind}/{quote(each, safe='')}"
    )
    return rendering.page_response(request, rendering.RenderedPage.of(text, _CALENDAR))


@router.get("/favicon.ico")
@router.get("/robots.txt")
async def fixed(request: Request) -> Response:
    """Return a file that browsers or search engines request by this name."""
    asset = rendering.assets()[request.url.path.removeprefix("/")]
    headers = {"Cache-Control": "public, max-age=86400"}
    return Response(asset.data, media_type=asset.media_type, headers=headers)
