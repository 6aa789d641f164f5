"""`/api/v1/leaderboards`: boards, their tasks and their standings, as JSON or CSV.

Standings that have not changed are not sent again.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final, Literal, TypeVar

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from pydantic import BaseModel, Field

from bot.domain.api import boards as api
from bot.domain.api.base import MOST_ON_A_PAGE, time_of
from bot.domain.api.finals import FinalBody, FinalsAnswer, PendingBody
from bot.domain.errors import unknown_name
from bot.domain.leaderboard import BoardStandings
from bot.domain.tasks.template import shown_files, template_of
from bot.reports.standings import standings_csv
from bot.services import boards, lookup
from bot.services.finals import finals_of
from bot.services.standings import board_standings
from bot.web.auth import AnyViewer
from bot.web.context import WebContext, context_of
from bot.web.routes.api import openapi
from runners.contract.evaluation import Timing

_boards = APIRouter(
    prefix="/leaderboards", tags=["leaderboards"], dependencies=[Depends(openapi.uncached)]
)


@_boards.get("")
async def leaderboards(
    request: Request,
    viewer: AnyViewer,
    *,
    limit: openapi.PageLimit = MOST_ON_A_PAGE,
    cursor: openapi.NameCursor = None,
) -> api.BoardsAnswer:
    """The boards that you may see, with their participants and best times."""
    context = context_of(request)
    overviews = await boards.list_boards(context.store, viewer, after=cursor or "", limit=limit + 1)
    now = context.clock.now()
    shown = tuple(api.BoardAnswer.seen(each, now) for each in overviews[:limit])
    return api.BoardsAnswer(boards=shown, next=shown[-1].name if len(overviews) > limit else None)


@_boards.get("/{name}")
async def leaderboard(
    request: Request, name: openapi.BoardName, viewer: AnyViewer
) -> api.BoardAnswer:
    """One board."""
    context = context_of(request)
    return api.BoardAnswer.seen(
        await boards.board(context.store, viewer, name), context.clock.now()
    )


_TEXT: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": {"text/plain": {"schema": {"type": "string"}}}}
}


@_boards.get("/{name}/task")
async def task(request: Request, name: openapi.BoardName, viewer: AnyViewer) -> api.TaskAnswer:
    """The task that judges new submissions."""
    return api.TaskAnswer.of(*await lookup.find_task(context_of(request).store, viewer, name))


@_boards.get("/{name}/task/files/{file}", response_class=Response, responses=_TEXT)
async def file(
    request: Request,
    name: openapi.BoardName,
    file: Annotated[str, Path(max_length=100, examples=["reference.py"])],
    viewer: AnyViewer,
) -> Response:
    """A file of the task, as text."""
    board, version = await lookup.find_task(context_of(request).store, viewer, name)
    files = shown_files(version.definition, board.name)
    if file not in files:
        raise unknown_name("file", file, files)
    return _text(files[file], file)


@_boards.get("/{name}/template", response_class=Response, responses=_TEXT)
async def template(
    request: Request,
    name: openapi.BoardName,
    viewer: AnyViewer,
    lang: Annotated[str | None, Query(max_length=100, description="A language of the task")] = None,
) -> Response:
    """A starter file, whose header names the board."""
    board, version = await lookup.find_task(context_of(request).store, viewer, name)
    starter = template_of(version.definition, board.name, lang)
    return _text(starter.text, starter.name)


def _text(text: str, name: str) -> Response:
    """Return text that browsers do not interpret as anything else."""
    headers = {**openapi.NO_STORE, "Content-Disposition": f'attachment; filename="{name}"'}
    return Response(text, media_type="text/plain; charset=utf-8", headers=headers)


_standings = APIRouter(prefix="/leaderboards/{name}", tags=["leaderboards"])

_CSV = "text/csv"
_LAG_S = 2.0
"""How long, in seconds, an old response may be used while the next one is written."""
_STANDINGS: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": {_CSV: {"schema": {"type": "string"}}}},
    304: {"description": "Nothing has changed since the answer with the ETag of `If-None-Match`"},
}
_KNOWN_TAG: Final[dict[str, Any]] = {
    "name": "If-None-Match",
    "in": "header",
    "description": "The ETag of the answer that you have",
    "schema": {"type": "string"},
}


class StandingsQuery(BaseModel):
    """Which leaderboards, and in which format."""

    gpu: openapi.GpuQuery = None
    version: openapi.VersionQuery = None
    format: Annotated[
        Literal["json", "csv"] | None, Field(description="The default is what `Accept` prefers")
    ] = None


@_standings.get(
    "/standings",
    response_model=api.LeaderboardsAnswer,
    responses=_STANDINGS,
    openapi_extra={"parameters": [_KNOWN_TAG]},
)
async def standings(
    request: Request,
    name: openapi.BoardName,
    viewer: AnyViewer,
    query: Annotated[StandingsQuery, Query()],
) -> Response:
    """The leaderboards of a board: one for each GPU type, the fastest first."""
    context, headers = context_of(request), request.headers
    ranked = await board_standings(context.store, viewer, name, query.gpu, version=query.version)
    as_csv = (query.format or _preferred(headers.get("accept", ""))) == "csv"
    answer = await _answer_of(context, ranked, as_csv=as_csv)
    tags = {each.strip().removeprefix("W/") for each in headers.get("if-none-match", "").split(",")}
    if tags & {answer.tag, "*"}:
        return Response(status_code=304, headers=_standings_headers(answer.tag))
    return Response(answer.body, headers=_standings_headers(answer.tag) | answer.headers)


@_standings.get("/finals", dependencies=[Depends(openapi.uncached)])
async def finals(request: Request, name: openapi.BoardName, viewer: AnyViewer) -> FinalsAnswer:
    """The newest final of each GPU type: how far it is, or its table."""
    return FinalsAnswer.of(name, await finals_of(context_of(request).store, viewer, name))


@dataclass(frozen=True, slots=True)
class _Answer:
    """A standings response for any number of readers."""

    body: bytes
    tag: str
    headers: dict[str, str]
    revisions: tuple[int, ...]
    """The change counters of its leaderboards."""


async def _answer_of(
    context: WebContext, ranked: Sequence[BoardStandings], *, as_csv: bool
) -> _Answer:
    """Return the response, which is written once for all who may see it, until it changes."""
    board, now = ranked[0].board, context.clock.now()
    revisions = tuple(each.revision for each in ranked)

    async def make() -> _Answer:
        # Not in a thread: while a thread is busy, the event loop gets the interpreter every 5 ms.
        body, headers = await _written(ranked, now, as_csv=as_csv)
        return _Answer(body, f'"{hashlib.sha256(body).hexdigest()[:32]}"', headers, revisions)

    contents = tuple(
        (each.gpu, each.version, each.reference_failure, each.quotes, each.final) for each in ranked
    )
    key = (as_csv, board, board.is_open(now), contents)
    answer: _Answer = await context.long_responses.get(
        key, make, current=lambda it, _: it.revisions == revisions, lag_s=_LAG_S
    )
    return answer


async def _written(
    ranked: Sequence[BoardStandings], now: datetime, *, as_csv: bool
) -> tuple[bytes, dict[str, str]]:
    if as_csv:
        text = standings_csv(ranked)
        saved_as = f'attachment; filename="{ranked[0].board.name}.csv"'
        headers = {"Content-Type": f"{_CSV}; charset=utf-8", "Content-Disposition": saved_as}
    else:
        text = (await leaderboards_answer(ranked, now)).model_dump_json()
        headers = {"Content-Type": "application/json"}
    return text.encode(), headers


def _standings_headers(tag: str) -> dict[str, str]:
    return {
        "ETag": tag,
        "Cache-Control": "private, no-cache",
        "Vary": "Accept, Authorization, Cookie",
    }


def _preferred(accept: str) -> str:
    """Return CSV if the client names it and not JSON."""
    return "csv" if _CSV in accept and "json" not in accept else "json"


async def leaderboards_answer(
    ranked: Sequence[BoardStandings], now: datetime
) -> api.LeaderboardsAnswer:
    """Return a board's leaderboards; yields to other tasks when they are large."""
    return api.LeaderboardsAnswer(
        board=api.BoardLine.of(ranked[0].board, now),
        leaderboards=tuple([await _standings_answer(each) for each in ranked]),
    )


async def _standings_answer(leaderboard: BoardStandings) -> api.StandingsAnswer:
    return api.StandingsAnswer(
        board=leaderboard.board.name,
        gpu=leaderboard.gpu,
        task_version=leaderboard.version,
        version_note=leaderboard.note,
        deadline=leaderboard.board.deadline,
        speed_of_light_ns=leaderboard.speed_of_light_ns,
        timing=Timing.IN_PROCESS if leaderboard.in_process else Timing.OUTSIDE,
        reference=time_of(leaderboard.reference),
        reference_failure=leaderboard.reference_failure,
        entries=tuple(
            [
                api.StandingBody.of(each, leaderboard.reference)
                async for each in yielding(leaderboard.entries)
            ]
        ),
        absent=tuple([api.Absent.of(each) async for each in yielding(leaderboard.refused)]),
        pending=tuple(map(PendingBody.of, leaderboard.pending)),
        final=None if leaderboard.final is None else FinalBody.of(leaderboard.final),
    )


STEP_S = 0.001
"""Seconds between two turns for other tasks; another request needs about ten such turns."""

Item = TypeVar("Item")


async def yielding(items: Iterable[Item], step_s: float = STEP_S) -> AsyncIterator[Item]:
    """Yield the same items, and let other tasks run after every `step_s` seconds."""
    now = asyncio.get_running_loop().time
    ends = now() + step_s
    for each in items:
        yield each
        if now() >= ends:
            await asyncio.sleep(0)
            ends = now() + step_s


router = APIRouter()
router.include_router(_boards)
router.include_router(_standings)
