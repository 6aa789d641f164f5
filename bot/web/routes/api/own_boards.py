"""`/leaderboards/NAME` for its creator: guests, rejudging, archive, deletion, export.

The export of a competition is here too.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send
from typing_extensions import override

from bot.domain.accounts import Caller
from bot.domain.api.base import BODY_MAX
from bot.domain.api.export import MEDIA_TYPE, ExportEnd, ExportPiece
from bot.domain.api.publishing import GuestsAnswer, GuestsOrder, RejudgeOrder, Rejudging
from bot.domain.board import Board
from bot.domain.errors import UserError
from bot.reports.competition import competition_pieces
from bot.reports.export import pieces
from bot.services import boards, competitions, lookup
from bot.services.submissions import rejudge_from
from bot.web import auth, bodies
from bot.web.context import ARCHIVE_ZIP_BYTES, WebContext, context_of
from bot.web.routes.api.openapi import NO_STORE, BoardName, takes, uncached

_owning = APIRouter(prefix="/leaderboards", tags=["leaderboards"], dependencies=[Depends(uncached)])

_MATCH = "The `ETag` of your downloaded archive; a board that changed since is not deleted"
_ZIP: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": {"application/zip": {"schema": {"type": "string", "format": "binary"}}}}
}


@_owning.get("/{name}/guests")
async def guests(request: Request, name: BoardName, viewer: auth.MayCreate) -> GuestsAnswer:
    """Who may see your board while it is private."""
    return _guests(await lookup.own_board(context_of(request).store, viewer, name))


@_owning.post("/{name}/guests", openapi_extra=takes(GuestsOrder))
async def invite(request: Request, name: BoardName, viewer: auth.MayCreate) -> GuestsAnswer:
    """Let people and roles see your private board."""
    store, body = context_of(request).store, await bodies.read(request, GuestsOrder, BODY_MAX)
    return _guests(
        await boards.invite(store, viewer, boards.Invitation(name, frozenset(body.guests)))
    )


@_owning.post("/{name}/guests/end", openapi_extra=takes(GuestsOrder))
async def uninvite(request: Request, name: BoardName, viewer: auth.MayCreate) -> GuestsAnswer:
    """Remove guests; they lose the board at once but keep their own submissions."""
    store, body = context_of(request).store, await bodies.read(request, GuestsOrder, BODY_MAX)
    return _guests(
        await boards.uninvite(store, viewer, boards.Invitation(name, frozenset(body.guests)))
    )


@_owning.post("/{name}/rejudge", status_code=202, openapi_extra=takes(RejudgeOrder))
async def rejudge(request: Request, name: BoardName, viewer: auth.MayCreate) -> Rejudging:
    """Judge everyone's best submission to an earlier task version again, by the current one."""
    store, body = context_of(request).store, await bodies.read(request, RejudgeOrder, BODY_MAX)
    board = await lookup.own_board(store, viewer, name)
    count, version = await rejudge_from(store, viewer, board, body.version)
    return Rejudging(submissions=count, version=version)


@_owning.get("/{name}/keepsake", response_class=Response, responses=_ZIP)
async def download_archive(
    request: Request,
    name: BoardName,
    viewer: auth.MayCreate,
    part: Annotated[int, Query(ge=1, le=10_000)] = 1,
) -> Response:
    """Every task version and source of your board, as zips; `Podium-Parts` is how many."""
    store = context_of(request).store
    archive = await boards.board_archive(
        store, viewer, boards.Deletion(name, name), zip_bytes=ARCHIVE_ZIP_BYTES
    )
    if part > len(archive.zips):
        raise UserError("unknown-part", f"the archive has {len(archive.zips)} parts")
    headers = {
        **NO_STORE,
        "ETag": f'"{archive.state}"',
        "Podium-Parts": str(len(archive.zips)),
        "Content-Disposition": f'attachment; filename="{archive.board.name}-{part}.zip"',
    }
    return Response(archive.zips[part - 1], headers=headers, media_type="application/zip")


@_owning.delete("/{name}", status_code=204)
async def delete(
    request: Request,
    name: BoardName,
    viewer: auth.MayCreate,
    *,
    if_match: Annotated[str | None, Header(max_length=100, description=_MATCH)] = None,
    reason: Annotated[str, Query(max_length=300)] = "",
) -> None:
    """Delete your board with everything on it, after you downloaded its archive."""
    store = context_of(request).store
    board = await lookup.own_board(store, viewer, name)
    archive = boards.BoardArchive(board, (), len(await store.submissions.to(board.id)))
    if if_match is None:
        raise UserError("no-match", "download the board archive, and send its ETag as If-Match")
    if if_match.strip() != f'"{archive.state}"':
        message = "the board has changed since that archive was made; download it again"
        raise UserError("stale-match", message)
    deletion = boards.Deletion(board.name, board.name, reason)
    await boards.delete_board(store, viewer, deletion, archive)


def _guests(board: Board) -> GuestsAnswer:
    return GuestsAnswer(guests=tuple(sorted(board.access.guests)))


_exports = APIRouter(prefix="/leaderboards", tags=["leaderboards"])

LONGEST_S = 1800.0
"""The longest duration of one export, including a slow reader."""
CHECK_EVERY_S = 1.0
"""Seconds between two checks of the token's rights during an export."""
_LINES: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": {MEDIA_TYPE: {"schema": {"type": "string"}}}}
}


class QueuedResponse(StreamingResponse):
    """A response that waits for a free slot, and stops when it takes too long."""

    slots: asyncio.Semaphore

    @override
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(LONGEST_S), self.slots:
                await super().__call__(scope, receive, send)


@_exports.get("/{name}/export", response_class=StreamingResponse, responses=_LINES)
async def export(request: Request, name: BoardName, viewer: auth.MayCreate) -> StreamingResponse:
    """Everything of your board: submissions, results, cases with raw samples, and sources.

    Each line is an object with a `kind`: `board`, then `rows` of a `table` and every `source`, then
    `end`. Without `end`, the export is incomplete. `podium export` writes it to files.
    """
    context = context_of(request)
    board = await lookup.own_board(context.store, viewer, name)
    return _export_response(request, viewer, _board_pieces(context, viewer, board.name))


_competition_exports = APIRouter(prefix="/competitions", tags=["competitions"])


@_competition_exports.get("/{name}/export", response_class=StreamingResponse, responses=_LINES)
async def export_competition(
    request: Request,
    name: Annotated[str, Path(max_length=100)],
    viewer: auth.MayCreate,
) -> StreamingResponse:
    """Everything of your competition: its overall ranking, and the export of each board.

    The first line has the `kind` `competition`; rows of the tables `overall` and `points` follow,
    then each board's export up to its `end`, and one more `end`.
    """
    context = context_of(request)
    found = await competitions.own_competition(context.store, context.clock, viewer, name)
    return _export_response(request, viewer, _competition_pieces(context, viewer, found.name))


async def _competition_pieces(
    context: WebContext, viewer: Caller, name: str
) -> AsyncGenerator[ExportPiece, None]:
    found = await competitions.competition_standings(context.store, context.clock, viewer, name)
    for piece in competition_pieces(found):
        yield piece
    for board in found.competition.boards:
        async with aclosing(_board_pieces(context, viewer, board.name)) as whole:
            async for piece in whole:
                yield piece
    yield ExportEnd()


async def _board_pieces(
    context: WebContext, viewer: Caller, name: str
) -> AsyncGenerator[ExportPiece, None]:
    found = await boards.export_board(context.store, viewer, name)
    async with (
        aclosing(boards.exported_evaluations(context.store, found)) as evaluations,
        aclosing(boards.exported_sources(context.store, found)) as sources,
        aclosing(pieces(found, evaluations, sources)) as whole,
    ):
        async for piece in whole:
            yield piece


def _export_response(
    request: Request, viewer: Caller, export: AsyncGenerator[ExportPiece, None]
) -> StreamingResponse:
    slots = context_of(request).export_slots
    if slots.locked():
        raise UserError("too-many-exports", "other boards are being exported; try again later")
    lines = _lines(request, viewer, export)
    answer = QueuedResponse(lines, media_type=MEDIA_TYPE, headers=NO_STORE)
    answer.slots = slots
    return answer


async def _lines(
    request: Request, viewer: Caller, export: AsyncGenerator[ExportPiece, None]
) -> AsyncIterator[bytes]:
    context, checked_at = context_of(request), _now()
    async with aclosing(export) as whole:
        async for piece in whole:
            if context.closing.begun:
                return
            if _now() - checked_at >= CHECK_EVERY_S:
                checked_at = _now()
                if not await auth.has_same_viewer(request, viewer):
                    return
            yield piece.model_dump_json().encode() + b"\n"


def _now() -> float:
    return asyncio.get_running_loop().time()


router = APIRouter()
router.include_router(_owning)
router.include_router(_exports)
router.include_router(_competition_exports)
