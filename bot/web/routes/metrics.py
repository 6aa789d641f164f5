"""`/metrics`: what Prometheus reads; it needs no token and tells nothing of any person or board."""

import structlog
from fastapi import APIRouter, Request, Response

from bot.domain.errors import StoreError
from bot.services.measures import measures
from bot.web.context import door_of
from bot.web.prometheus import CONTENT_TYPE, exposition

router = APIRouter()

FOR_S = 5.0
"""Anybody may ask: asked without end, it still costs little."""
WITHIN_S = 5.0
"""For the database to answer: Prometheus gives up after 10 s."""

_log = structlog.get_logger(__name__)


@router.get("/metrics", include_in_schema=False)
async def metrics(request: Request) -> Response:
    """Measured at most every few seconds, however many ask."""
    door = door_of(request)
    found = None
    try:
        found = await door.kept.get_within(
            "measures", FOR_S, WITHIN_S, lambda: measures(door.store, door.clock)
        )
    except (StoreError, TimeoutError) as error:
        _log.warning("nothing measured", action="unmeasured", error=str(error))
    headers = {"Cache-Control": "no-store"}
    return Response(exposition(found, door.lines), media_type=CONTENT_TYPE, headers=headers)
