"""`/api/v1/competitions`: sets of boards with one overall ranking."""

from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from pydantic import StringConstraints

from bot.domain.api import publishing as api
from bot.domain.api.base import BODY_MAX, MOST_ON_A_PAGE
from bot.domain.competition import LONGEST_NAME
from bot.reports.competition import overall_csv
from bot.services import competitions
from bot.web import auth, bodies
from bot.web.context import context_of
from bot.web.routes.api import openapi

router = APIRouter(
    prefix="/competitions", tags=["competitions"], dependencies=[Depends(openapi.uncached)]
)

CompetitionName = Annotated[
    str, Path(max_length=LONGEST_NAME, description="A competition's name", examples=["Season"])
]
_ARCHIVES = "With `boards`, the `ETag` of the downloaded archive of each board"
_ArchiveTag = Annotated[str, StringConstraints(max_length=100)]
_CSV: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": {"text/csv": {"schema": {"type": "string"}}}}
}


@router.get("")
async def listed(
    request: Request,
    viewer: auth.AnyViewer,
    *,
    limit: openapi.PageLimit = MOST_ON_A_PAGE,
    cursor: Annotated[str | None, Query(max_length=LONGEST_NAME)] = None,
) -> api.CompetitionsAnswer:
    """The competitions that you may see, by name; before one opens, only its name and date."""
    context = context_of(request)
    found = await competitions.visible_competitions(
        context.store, context.clock, viewer, after=cursor or "", limit=limit + 1
    )
    shown = tuple(
        api.CompetitionAnswer.of(each, viewer, context.clock.now()) for each in found[:limit]
    )
    return api.CompetitionsAnswer(
        competitions=shown, next=shown[-1].name if len(found) > limit else None
    )


@router.get("/{name}", response_model=api.CompetitionStandingsAnswer, responses=_CSV)
async def competition(
    request: Request,
    name: CompetitionName,
    viewer: auth.AnyViewer,
    *,
    form: Annotated[Literal["json", "csv"], Query(alias="format")] = "json",
) -> Response:
    """A competition with its boards and its overall ranking; as CSV, only the ranking."""
    context = context_of(request)
    found = await competitions.competition_standings(context.store, context.clock, viewer, name)
    if form == "csv":
        headers = {**openapi.NO_STORE, "Content-Disposition": "attachment; filename=overall.csv"}
        return Response(overall_csv(found), media_type="text/csv", headers=headers)
    answer = api.CompetitionStandingsAnswer.seen(found, viewer, context.clock.now())
    return Response(
        answer.model_dump_json(), media_type="application/json", headers=openapi.NO_STORE
    )


@router.post("/{name}/close")
async def close(
    request: Request, name: CompetitionName, viewer: auth.MayCreate
) -> api.CompetitionAnswer:
    """Close every open board of your competition now."""
    context = context_of(request)
    closed = await competitions.close_competition(context.store, context.clock, viewer, name)
    return api.CompetitionAnswer.of(closed, viewer, context.clock.now())


@router.post("/{name}/extend", openapi_extra=openapi.takes(api.ExtendOrder))
async def extend(
    request: Request, name: CompetitionName, viewer: auth.MayCreate
) -> api.CompetitionAnswer:
    """Move those deadlines of your competition's boards that are before `deadline` to it."""
    context, body = context_of(request), await bodies.read(request, api.ExtendOrder, BODY_MAX)
    extended = await competitions.extend_competition(
        context.store, context.clock, viewer, name, until=body.deadline
    )
    return api.CompetitionAnswer.of(extended, viewer, context.clock.now())


@router.delete("/{name}", status_code=204)
async def delete(
    request: Request,
    name: CompetitionName,
    viewer: auth.MayCreate,
    *,
    boards: Annotated[bool, Query(description="Delete its boards too")] = False,
    archive: Annotated[tuple[_ArchiveTag, ...], Query(description=_ARCHIVES)] = (),
    reason: Annotated[str, Query(max_length=300)] = "",
) -> None:
    """Delete your competition; its boards, submissions and scores stay unless `boards` is true."""
    context = context_of(request)
    archives = [each.strip('"') for each in archive] if boards else None
    await competitions.delete_competition(
        context.store, context.clock, viewer, name, reason=reason, archives=archives
    )
