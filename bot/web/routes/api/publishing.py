"""`/api/v1/leaderboards`: creates, changes and deletes boards; `/checks`: their checks."""

from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from fastapi import status as http

from bot.domain.accounts import Caller
from bot.domain.api.base import BODY_MAX, PATH
from bot.domain.api.boards import BoardAnswer
from bot.domain.api.publishing import (
    BoardWish,
    CheckAnswer,
    ChecksAnswer,
    GuestsAnswer,
    GuestsOrder,
    NewBoardWish,
    RejudgeOrder,
    Rejudging,
    TaskWish,
)
from bot.domain.board import Access, Board, parse_pins
from bot.domain.errors import UserError
from bot.domain.ids import ReleaseId
from bot.domain.publication import PublishRequest
from bot.services import boards as service
from bot.services.boards import (
    BoardArchive,
    Deletion,
    Invitation,
    board_archive,
    delete_board,
    invite,
    uninvite,
)
from bot.services.lookup import find_board, own_board, task_of
from bot.services.publishing.publish import NO_BOARD, publish
from bot.services.submissions import rejudge_from
from bot.web.auth import FromPerson, MayCreate
from bot.web.bodies import read
from bot.web.context import DOOR, WebContext, context_of
from bot.web.publications import Check, own_check
from bot.web.routes.api.board_bodies import board_answer
from bot.web.routes.api.openapi import NO_STORE, BoardName, takes, unkept
from bot.web.routes.api.publishing_bodies import access_of, check_answer, prove, zip_body, zip_of

_publishing = APIRouter(
    prefix="/leaderboards", tags=["leaderboards"], dependencies=[Depends(unkept)]
)

PART_BYTES = 64 << 20
"""The largest zip of a board archive."""
_TAKEN = http.HTTP_202_ACCEPTED
_MATCH = "The `ETag` of the board's keepsake: what it lacks is not deleted unseen"
_ZIP: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": {"application/zip": {"schema": {"type": "string", "format": "binary"}}}}
}


@_publishing.post("", status_code=_TAKEN, openapi_extra=zip_body(NewBoardWish))
async def create(request: Request, response: Response, viewer: MayCreate) -> CheckAnswer:
    """Make a board of a task zip: its own solutions are run first; follow the check."""
    door = context_of(request)
    found, fields = await zip_of(request, NewBoardWish)
    wanted = PublishRequest(
        viewer.person,
        fields.name or None,
        fields.gpus,
        fields.deadline,
        endless=fields.endless,
        access=access_of(fields, Access()),
        pins=parse_pins(fields.pools),
        onto=NO_BOARD,
        strict=not fields.lenient,
    )
    return await _taken(door, viewer, await prove(door, found, wanted), response)


@_publishing.post("/{name}/task", status_code=_TAKEN, openapi_extra=zip_body(TaskWish))
async def update(
    request: Request, response: Response, name: BoardName, viewer: MayCreate
) -> CheckAnswer:
    """Give a board its task's next version, once that is proven; old scores stay with theirs."""
    door = context_of(request)
    board = await find_board(door.store, viewer, name)
    found, fields = await zip_of(request, TaskWish)
    wanted = PublishRequest(
        viewer.person,
        board.name,
        fields.gpus,
        fields.deadline,
        endless=fields.endless,
        as_admin=viewer.sees_all,
        access=access_of(fields, board.access),
        pins=parse_pins(fields.pools),
        onto=board.task_version,
        strict=not fields.lenient,
    )
    return await _taken(door, viewer, await prove(door, found, wanted), response)


@_publishing.patch("/{name}", openapi_extra=takes(BoardWish))
async def configure(request: Request, name: BoardName, viewer: MayCreate) -> BoardAnswer:
    """Change a board's deadline, its GPU types, or who may see it and its sources."""
    door = context_of(request)
    board = await own_board(door.store, viewer, name)
    wanted = await read(request, BoardWish, BODY_MAX)
    _, task = await task_of(door.store, viewer, board.name)
    change = PublishRequest(
        viewer.person,
        board.name,
        wanted.gpus,
        wanted.deadline,
        endless=wanted.endless,
        as_admin=viewer.sees_all,
        access=access_of(wanted, board.access),
        pins=parse_pins(wanted.pools),
        onto=board.task_version,
    )
    await publish(door.store, door.clock, change, task)
    found = await service.board(door.store, viewer, board.name)
    return board_answer(found, door.clock.now())


@_publishing.get("/{name}/guests")
async def guests(request: Request, name: BoardName, viewer: MayCreate) -> GuestsAnswer:
    """Who may see your board while it is private."""
    return _guests(await own_board(context_of(request).store, viewer, name))


@_publishing.post("/{name}/guests", openapi_extra=takes(GuestsOrder))
async def let_in(request: Request, name: BoardName, viewer: MayCreate) -> GuestsAnswer:
    """Let people and roles see your private board."""
    store, body = context_of(request).store, await read(request, GuestsOrder, BODY_MAX)
    return _guests(await invite(store, viewer, Invitation(name, frozenset(body.guests))))


@_publishing.post("/{name}/guests/end", openapi_extra=takes(GuestsOrder))
async def let_out(request: Request, name: BoardName, viewer: MayCreate) -> GuestsAnswer:
    """For them the board is gone at once; their own submissions stay theirs."""
    store, body = context_of(request).store, await read(request, GuestsOrder, BODY_MAX)
    return _guests(await uninvite(store, viewer, Invitation(name, frozenset(body.guests))))


@_publishing.post("/{name}/rejudge", status_code=_TAKEN, openapi_extra=takes(RejudgeOrder))
async def rejudge(request: Request, name: BoardName, viewer: MayCreate) -> Rejudging:
    """Judge everyone's best submission to an earlier task version by the present one."""
    store, body = context_of(request).store, await read(request, RejudgeOrder, BODY_MAX)
    board = await own_board(store, viewer, name)
    count, version = await rejudge_from(store, viewer, board, body.version)
    return Rejudging(submissions=count, version=version)


@_publishing.get("/{name}/keepsake", response_class=Response, responses=_ZIP)
async def hand_out(
    request: Request,
    name: BoardName,
    viewer: MayCreate,
    part: Annotated[int, Query(ge=1, le=10_000)] = 1,
) -> Response:
    """Every task version and every source of your board as a zip; `Podium-Parts` has how many."""
    store = context_of(request).store
    kept = await board_archive(store, viewer, Deletion(name, name), zip_bytes=PART_BYTES)
    if part > len(kept.zips):
        raise UserError("unknown-part", f"the keepsake has {len(kept.zips)} parts")
    headers = {
        **NO_STORE,
        "ETag": _state(kept.board, kept.submissions),
        "Podium-Parts": str(len(kept.zips)),
        "Content-Disposition": f'attachment; filename="{kept.board.name}-{part}.zip"',
    }
    return Response(kept.zips[part - 1], headers=headers, media_type="application/zip")


@_publishing.delete("/{name}", status_code=http.HTTP_204_NO_CONTENT)
async def delete(
    request: Request,
    name: BoardName,
    viewer: MayCreate,
    *,
    if_match: Annotated[str | None, Header(max_length=100, description=_MATCH)] = None,
    reason: Annotated[str, Query(max_length=300)] = "",
) -> None:
    """Delete your board with everything of it, once you have its keepsake."""
    store = context_of(request).store
    board = await own_board(store, viewer, name)
    count = len(await store.submissions.to(board.id))
    if if_match is None:
        raise UserError("no-match", "fetch the board's keepsake, and send its ETag as If-Match")
    if if_match.strip() != _state(board, count):
        words = "the board has moved on since that keepsake was made; fetch it once more"
        raise UserError("stale-match", words)
    deletion = Deletion(board.name, board.name, reason)
    await delete_board(store, viewer, deletion, BoardArchive(board, (), count))


def _state(board: Board, submissions: int) -> str:
    """Return a digest that changes when the board changes."""
    return f'"{board.id}-{board.task_version}-{submissions}"'


def _guests(board: Board) -> GuestsAnswer:
    return GuestsAnswer(guests=tuple(sorted(board.access.guests)))


async def _taken(
    door: WebContext, viewer: Caller, number: ReleaseId, response: Response
) -> CheckAnswer:
    response.headers["Location"] = f"{PATH}/checks/{number}"
    return await check_answer(door.store, await own_check(door, viewer, number), door.clock.now())


_checks = APIRouter(prefix="/checks", tags=["leaderboards"], dependencies=[Depends(unkept)])


@_checks.get("")
async def own(request: Request, viewer: FromPerson) -> ChecksAnswer:
    """Your own checks of the last month, newest first."""
    door = context_of(request)
    told = await door.store.releases.told_to(DOOR, viewer.person)
    now = door.clock.now()
    found = [await check_answer(door.store, Check.of(each), now) for each in told]
    return ChecksAnswer(checks=tuple(found))


@_checks.get("/{number}")
async def check(
    request: Request, number: Annotated[int, Path(ge=1, lt=1 << 63)], viewer: FromPerson
) -> CheckAnswer:
    """How far a check of yours is: each run of its solutions, and what became of the board."""
    door = context_of(request)
    return await check_answer(door.store, await own_check(door, viewer, number), door.clock.now())


router = APIRouter()
router.include_router(_publishing)
router.include_router(_checks)
