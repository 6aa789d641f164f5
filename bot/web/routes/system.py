"""`/healthz`, `/readyz`, `/metrics` and `/static`."""

from http import HTTPStatus
from typing import Annotated

import structlog
from fastapi import APIRouter, HTTPException, Query, Request, Response
from fastapi.responses import JSONResponse

from bot.domain.errors import StoreError
from bot.services.operations import ComponentHealth, State, read_metrics, readiness
from bot.web import prometheus, rendering
from bot.web.context import context_of

router = APIRouter()
_log = structlog.get_logger(__name__)

READINESS_FOR_S = 1.0
"""Seconds for which the result is cached for everyone, so that frequent requests cost little."""
WITHIN_S = 5.0
"""Seconds that a request waits for readiness or metrics."""


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """For supervisors that restart a process that does not respond."""
    return {"status": "ok"}


@router.get("/readyz")
async def readyz(
    request: Request, exclude: Annotated[list[str] | None, Query(max_length=16)] = None
) -> JSONResponse:
    """For load balancers: 503 lists the components that do not work.

    `exclude` ignores a component, such as discord, whose outage must not make the pages
    unavailable.
    """
    parts = await _parts(request)
    excluded = exclude or ()
    failed = [p.name for p in parts if p.state is State.FAILED and p.name not in excluded]
    body = {
        "status": "not ready" if failed else "ready",
        "not_ready": failed,
        "parts": {each.name: {"state": each.state, "detail": each.detail} for each in parts},
    }
    status = HTTPStatus.SERVICE_UNAVAILABLE if failed else HTTPStatus.OK
    return JSONResponse(body, status, headers={"Cache-Control": "no-store"})


async def _parts(request: Request) -> tuple[ComponentHealth, ...]:
    context = context_of(request)

    async def check() -> tuple[ComponentHealth, ...]:
        return await readiness(
            context.store, has_runners=context.has_runners, connections=context.connections
        )

    try:
        return await context.cache.get_within("readiness", READINESS_FOR_S, WITHIN_S, check)
    except TimeoutError as error:
        _log.warning("not ready", action="not-ready", error=f"the database: {error}")
        return (
            ComponentHealth(
                "database", State.FAILED, "it did not answer in time; podium.log says why"
            ),
        )


METRICS_FOR_S = 5.0
"""Seconds for which the metrics are cached for everyone, so that frequent requests cost little."""


@router.get("/metrics", include_in_schema=False)
async def metrics(request: Request) -> Response:
    """Return the metrics, which are computed at most every few seconds for all callers."""
    context = context_of(request)
    current = None
    try:
        current = await context.cache.get_within(
            "measures", METRICS_FOR_S, WITHIN_S, lambda: read_metrics(context.store, context.clock)
        )
    except (StoreError, TimeoutError) as error:
        _log.warning("the metrics cannot be read", action="unmeasured", error=str(error))
    headers = {"Cache-Control": "no-store"}
    return Response(
        prometheus.exposition(current, context.connections),
        media_type=prometheus.CONTENT_TYPE,
        headers=headers,
    )


@router.get(f"{rendering.PREFIX}/{{digest}}/{{name}}", include_in_schema=False)
async def static(request: Request, digest: str, name: str) -> Response:
    """Return a file if its digest matches the address."""
    asset = rendering.assets().get(name)
    if asset is None or asset.digest != digest:
        raise HTTPException(HTTPStatus.NOT_FOUND)
    headers = {"Cache-Control": "public, max-age=31536000, immutable", "Vary": "Accept-Encoding"}
    if not rendering.takes_gzip(request):
        return Response(asset.data, media_type=asset.media_type, headers=headers)
    headers["Content-Encoding"] = "gzip"
    return Response(asset.zipped, media_type=asset.media_type, headers=headers)
