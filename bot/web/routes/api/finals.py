"""`/api/v1`: finals of a board, for everybody to read and for admins to start."""

from fastapi import APIRouter, Depends, Request

from bot.domain.api import confirmations as api
from bot.domain.api.base import BODY_MAX
from bot.domain.confirmation import Confirmation, PairRatio
from bot.domain.finals import Final, FinalRequest, FinalRow
from bot.services import finals
from bot.services.moderation import Decision
from bot.web import auth, bodies
from bot.web.context import context_of
from bot.web.routes.api import openapi

router = APIRouter(dependencies=[Depends(openapi.uncached)])


@router.get("/leaderboards/{name}/finals", tags=["leaderboards"])
async def shown(
    request: Request, name: openapi.BoardName, viewer: auth.AnyViewer
) -> api.FinalsAnswer:
    """The newest final of each GPU type: how far it is, or its table."""
    found = await finals.finals_of(context_of(request).store, viewer, name)
    return finals_answer(name, found)


@router.post(
    "/admin/finals",
    status_code=201,
    tags=["admin"],
    dependencies=[Depends(auth.administrator)],
    openapi_extra=openapi.takes(api.FinalOrder),
)
async def start(request: Request, viewer: auth.MayAdminister) -> api.FinalsAnswer:
    """Compare the first entries of a board, each with the one before."""
    body = await bodies.read(request, api.FinalOrder, BODY_MAX)
    wanted = FinalRequest(body.board, body.gpu, body.top)
    decision = Decision(viewer.person, body.reason)
    started = await finals.start_final(context_of(request).store, viewer, decision, wanted)
    return finals_answer(body.board, started)


@router.post(
    "/admin/finals/cancel",
    tags=["admin"],
    dependencies=[Depends(auth.administrator)],
    openapi_extra=openapi.takes(api.FinalKey),
)
async def cancel(request: Request, viewer: auth.MayAdminister) -> api.FinalsCancelled:
    """Cancel the running finals of a board; its standings stay as they are."""
    body = await bodies.read(request, api.FinalKey, BODY_MAX)
    decision = Decision(viewer.person, body.reason)
    store = context_of(request).store
    return api.FinalsCancelled(
        cancelled=await finals.cancel_final(store, viewer, decision, body.board)
    )


def finals_answer(board: str, found: tuple[Final, ...]) -> api.FinalsAnswer:
    """Return the finals of a board."""
    return api.FinalsAnswer(board=board, finals=tuple(map(final_body, found)))


def final_body(final: Final) -> api.FinalBody:
    """Return one final."""
    return api.FinalBody(
        gpu=final.gpu,
        top=final.top,
        created_at=final.created_at,
        ended_at=final.ended_at,
        entries=None if final.entries is None else len(final.entries),
        compared=final.compared,
        rows=None if final.rows is None else tuple(map(_row, final.rows)),
    )


def _row(row: FinalRow) -> api.FinalRowBody:
    ratio = None
    if row.ratio is not None and row.ratio_half_width is not None:
        ratio = api.RatioBody(ratio=row.ratio, half_width=row.ratio_half_width)
    return api.FinalRowBody(
        rank=row.rank,
        person=row.person_name,
        submission=row.submission,
        time_ns=row.time_ns,
        half_width_ns=row.half_width_ns,
        ratio=ratio,
    )


def pending_body(found: Confirmation) -> api.PendingBody:
    """Return a run that is not ranked until it is confirmed."""
    return api.PendingBody(
        person=found.person_name,
        person_id=found.person,
        submission=found.submission,
        place=found.place,
        time=openapi.time_answer(found.held),
        submitted_at=found.submitted_at,
    )


def confirmation_body(found: Confirmation | None) -> api.ConfirmationBody | None:
    """Return the last comparison of a run, if there is one."""
    if found is None:
        return None
    return api.ConfirmationBody(
        state=found.state,
        place=found.place,
        comparing=found.run is not None,
        rival=found.rival,
        rival_person=found.rival_name,
        ratio=_ratio(found.ratio),
        reason=found.reason,
    )


def _ratio(ratio: PairRatio | None) -> api.RatioBody | None:
    if ratio is None:
        return None
    return api.RatioBody(ratio=ratio.ratio, half_width=ratio.half_width)
