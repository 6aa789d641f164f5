"""The boards that there are for whoever asks, with nothing of their tasks that helps to cheat."""

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from bot.domain.board import Board
from bot.frontends.web.door import door_of
from bot.frontends.web.routes.popcorn.answering import Route, answered
from bot.frontends.web.routes.popcorn.callers import AnyReader
from bot.frontends.web.routes.popcorn.queues import Json, runner_queue
from bot.reports.lines import clean
from bot.services.lookup import find_board, visible_boards
from runners.contract.task import GPU_NAME, TaskDefinition, Workload

router = APIRouter(route_class=Route)

GpuName = Annotated[str, Path(pattern=GPU_NAME.pattern)]


@router.get("/leaderboards")
async def leaderboards(request: Request, reader: AnyReader) -> Response:
    """Every board that the reader may see, by name."""
    store = door_of(request).store
    found = []
    for board in await visible_boards(store, reader):
        version = await store.boards.version(board.task_version)
        if version is not None:  # else it was deleted a moment ago
            found.append(_board(board, version.definition))
    return answered(found)


@router.get("/gpus/{board}")
async def gpus(request: Request, reader: AnyReader, board: str) -> Response:
    """The GPU types of a board."""
    found = await find_board(door_of(request).store, reader, board.lower())
    return answered(list(found.gpus))


@router.get("/runner_queue/{gpu}")
async def queue(
    request: Request,
    reader: AnyReader,  # noqa: ARG001 - a token that is nobody's is refused
    gpu: GpuName,
) -> Response:
    """How busy a GPU type is."""
    return answered(await runner_queue(door_of(request).store, gpu))


def _board(board: Board, task: TaskDefinition) -> Json:
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


def _task(task: TaskDefinition) -> Json:
    """The task without its files and seeds, which popcorn-cli does not look at."""
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


def arguments(case: Workload) -> Json:
    """A case without its seed."""
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in case.args.items()
        if name != "seed"
    }
