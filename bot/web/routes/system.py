"""`/healthz`: whether this process answers. `/readyz`: whether each of its parts works."""

from http import HTTPStatus
from typing import Annotated

import structlog
from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse

from bot.services.operations import Part, State, readiness
from bot.web.context import door_of

router = APIRouter()
_log = structlog.get_logger(__name__)

FOR_S = 1.0
"""Anybody may ask: asked without end, it still costs little."""
WITHIN_S = 5.0


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """For whoever restarts what does not answer."""
    return {"status": "ok"}


@router.get("/readyz")
async def readyz(
    request: Request, exclude: Annotated[list[str] | None, Query(max_length=16)] = None
) -> JSONResponse:
    """For whoever sends traffic here: 503 names the parts that do not work.

    `exclude` passes over a part, such as discord where its outage shall not take the pages away.
    """
    parts = await _parts(request)
    failed = [each.name for each in parts if each.state is State.FAILED]
    failed = [name for name in failed if name not in (exclude or ())]
    body = {
        "status": "not ready" if failed else "ready",
        "not_ready": failed,
        "parts": {each.name: {"state": each.state, "detail": each.detail} for each in parts},
    }
    status = HTTPStatus.SERVICE_UNAVAILABLE if failed else HTTPStatus.OK
    return JSONResponse(body, status, headers={"Cache-Control": "no-store"})


async def _parts(request: Request) -> tuple[Part, ...]:
    door = door_of(request)

    async def look() -> tuple[Part, ...]:
        return await readiness(door.store, judges=door.judges, lines=door.lines)

    try:
        return await door.kept.get_within("readiness", FOR_S, WITHIN_S, look)
    except TimeoutError as error:
        _log.warning("not ready", action="not-ready", error=f"the database: {error}")
        return (Part("database", State.FAILED, "it did not answer in time; podium.log says why"),)
