"""The boards that the caller may see, their rankings, and the queue of a GPU type.

A task is sent without files and seeds, which would help to cheat. popcorn-cli does not request
rankings; other sites do.
"""

from contextlib import suppress
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from bot.domain.accounts import Caller
from bot.domain.board import Board
from bot.domain.errors import StoreError
from bot.domain.ids import PersonId
from bot.domain.leaderboard import BoardStandings
from bot.ports import Store
from bot.reports.escaping import clean
from bot.services import lookup, operations, standings
from bot.web.compat.kernelbot import http, translate
from bot.web.context import WebContext, context_of
from runners.contract.gpus import gpu_type
from runners.contract.task import GPU_NAME, TaskDefinition, Workload

RUNNER = "Podium"


async def runner_queue(store: Store, gpu: str) -> http.Json:
    """Return the jobs of a GPU type, and the number of its workers."""
    gpu = gpu_type(gpu)
    pool = next((each for each in await operations.gpu_queues(store) if each.gpu == gpu), None)
    if pool is None:
        if not any(gpu in board.gpus for board in await store.boards.all()):
            return _unknown(gpu)
        pool = operations.GpuQueue(gpu, queued=0, running=0, workers=0, paused=None)
    serves = bool(pool.workers) and pool.paused is None
    return {
        "runner": RUNNER,
        "gpu": gpu,
        "queued_jobs": pool.queued,
        "running_jobs": pool.running,
        "available_runners": pool.workers,
        "status": "available" if serves else "unavailable",
        "error": pool.paused,
    }


def _unknown(gpu: str) -> http.Json:
    return {
        "runner": "unknown",
        "gpu": gpu,
        "queued_jobs": None,
        "running_jobs": None,
        "available_runners": None,
        "status": "unavailable",
        "error": "unknown gpu",
    }


async def queue_if_available(store: Store, gpu: str) -> http.Json | None:
    """Return a GPU type's queue; None if the database fails, because callers can do without it."""
    with suppress(StoreError):
        return await runner_queue(store, gpu)
    return None


router = APIRouter(route_class=http.Route)

GpuName = Annotated[str, Path(pattern=GPU_NAME.pattern)]


@router.get("/leaderboards")
async def leaderboards(request: Request, reader: http.AnyReader) -> Response:
    """Every board that the reader may see, by name."""
    store = context_of(request).store
    shown = []
    for board in await lookup.visible_boards(store, reader):
        version = await store.boards.version(board.task_version)
        if version is not None:  # otherwise it was just deleted
            shown.append(_board(board, version.definition))
    return http.json_response(shown)


@router.get("/gpus/{board}")
async def gpus(request: Request, reader: http.AnyReader, board: str) -> Response:
    """The GPU types of a board."""
    visible = await lookup.find_board(context_of(request).store, reader, board.lower())
    return http.json_response(list(visible.gpus))


@router.get("/runner_queue/{gpu}")
async def queue(
    request: Request,
    reader: http.AnyReader,  # noqa: ARG001 - to refuse an invalid token
    gpu: GpuName,
) -> Response:
    """How busy a GPU type is."""
    return http.json_response(await runner_queue(context_of(request).store, gpu))


def _board(board: Board, task: TaskDefinition) -> http.Json:
    return {
        "id": board.id,
        "name": board.name,
        "deadline": None if board.deadline is None else board.deadline.isoformat(),
        "task": _task(task),
        "gpu_types": list(board.gpus),
        "creator_id": board.creator,
        "forum_id": -1,
        "description": clean(task.description),
        "secret_seed": None,
        "visibility": board.access.visibility.value,
    }


def _task(task: TaskDefinition) -> http.Json:
    """Return the task without its files and seeds, which popcorn-cli does not use."""
    return {
        "lang": task.lang,
        "files": {},
        "config": {},
        "libraries": list(task.libraries),
        "tests": [arguments(case) for case in task.tests],
        "test_timeout": task.test_timeout,
        "benchmarks": [arguments(case) for case in task.benchmarks],
        "benchmark_timeout": task.benchmark_timeout,
        "ranked_timeout": task.ranked_timeout,
        "ranking_by": task.ranking_by.value,
        "seed": None,
        "multi_gpu": task.multi_gpu,
    }


def arguments(case: Workload) -> http.Json:
    """Return a case without its seed."""
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in case.args.items()
        if name != "seed"
    }


_MOST = (1 << 63) - 1
Count = Annotated[int | None, Query(ge=0, le=_MOST)]


@router.get("/submissions/{board}/{gpu}")
async def ranked(
    request: Request,
    reader: http.AnyReader,
    board: str,
    gpu: str,
    *,
    limit: Count = None,
    offset: Annotated[int, Query(ge=0, le=_MOST)] = 0,
) -> Response:
    """The best submission of each person, fastest first; times in seconds."""
    context = context_of(request)
    leaderboard = await _standings(context, reader, board, gpu)
    entries = leaderboard.entries[offset : None if limit is None else offset + limit]
    submitted = await context.store.submissions.several([each.score.submission for each in entries])
    by_id = {each.id: each for each in submitted}
    return http.json_response(
        [
            {
                "submission_name": by_id[each.score.submission].file_name,
                "submission_id": each.score.submission,
                "user_id": each.score.person,
                "submission_time": translate.moment(each.score.submitted_at),
                "submission_score": each.score.value.time_ns / 1e9,
                "user_name": each.score.person_name,
                "rank": each.rank,
                "leaderboard_name": leaderboard.board.name,
                "gpu_type": leaderboard.gpu,
            }
            for each in entries
        ]
    )


@router.get("/submission_count/{board}/{gpu}")
async def count(
    request: Request, reader: http.AnyReader, board: str, gpu: str, *, user_id: Count = None
) -> Response:
    """The number of ranked people, or of one person's ranked runs that count."""
    leaderboard = await _standings(context_of(request), reader, board, gpu)
    if user_id is None:
        return http.json_response({"count": len(leaderboard.entries)})
    person = PersonId(user_id)
    counted = sum(each.attempts for each in leaderboard.entries if each.score.person == person)
    return http.json_response({"count": counted})


async def _standings(context: WebContext, reader: Caller, board: str, gpu: str) -> BoardStandings:
    (leaderboard,) = await standings.board_standings(context.store, reader, board.lower(), gpu)
    return leaderboard
