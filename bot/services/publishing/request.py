"""A publish request, the rule for its GPU types, and the reading of its task zip."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pydantic import Base64Bytes, TypeAdapter

from bot.domain.board import Board
from bot.domain.errors import UserError
from bot.domain.ids import TaskVersionId
from bot.domain.publication import PublishRequest
from bot.domain.requirements import has_device
from bot.domain.tasks.bundle import TaskBundle, read_zip, solutions
from bot.domain.tasks.lint import lint
from bot.domain.tasks.task_file import ParsedTask, read_task
from bot.ports import Store
from bot.services.apart import Apart
from runners.contract.gpus import gpu_types
from runners.contract.runner import Runner
from runners.contract.task import TaskDefinition

NO_BOARD = TaskVersionId(0)
"""Stands for a version and means that no board of this name may exist."""


REQUEST = TypeAdapter(PublishRequest)
"""A request as the JSON that is stored with its zip."""


@dataclass(frozen=True, slots=True)
class TaskUpload:
    """A request with its zip, and the task that was read from the zip."""

    request: PublishRequest
    zip: bytes
    task: TaskDefinition

    def for_gpus(self, gpus: Sequence[str]) -> "TaskUpload":
        """Return the same upload for these GPU types."""
        return replace(self, request=replace(self.request, gpus=tuple(gpus)))


TASKS = Apart(10.0, patience_s=30.0)
"""The process in which untrusted tasks are read."""


async def read_upload(data: bytes, request: PublishRequest) -> tuple[TaskBundle, ParsedTask]:
    """Return the files of a zip and its task; UserError with file and line."""
    parsed = await TASKS.do(task_in, data, request)
    return await asyncio.to_thread(read_zip, data, name=request.zip_name), parsed


def task_in(data: Base64Bytes, request: PublishRequest) -> ParsedTask:
    """Return the task of a zip that came with this request; only called in its own process."""
    bundle = read_zip(data, name=request.zip_name)
    parsed = read_task(bundle, strict=request.strict)
    lint(parsed.task, solutions(bundle))
    return parsed


def named_gpus(
    request: PublishRequest, task: TaskDefinition, board: Board | None
) -> tuple[str, ...]:
    """Return the GPU types of the request, else of its board, else of the task, without repeats."""
    present = () if board is None else board.gpus
    return gpu_types(request.gpus or present or task.gpus)


async def possible_gpus(
    store: Store, runners: Sequence[Runner], task: TaskDefinition
) -> tuple[str, ...]:
    """Return the GPU types that a board of this task can have, sorted.

    They are offered here or by a live worker, or named by the task, and fit the task's device.
    """
    offers = [await runner.capabilities() for runner in runners]
    offered = {gpu for offer in offers for gpu in offer.gpus}
    alive = {gpu for worker in await store.workers.alive() for gpu in worker.gpus or ()}
    known = offered | alive | set(gpu_types(task.gpus))
    return tuple(sorted(gpu for gpu in known if has_device(task, gpu)))


async def default_gpus(
    store: Store,
    runners: Sequence[Runner],
    request: PublishRequest,
    task: TaskDefinition,
    *,
    board: Board | None,
) -> tuple[str, ...]:
    """Return the named GPU types, else every possible one; UserError `no-gpu` when none is."""
    gpus = named_gpus(request, task, board) or await possible_gpus(store, runners, task)
    if not gpus:
        raise no_gpu(task)
    return gpus


async def with_gpus(
    store: Store, runners: Sequence[Runner], request: PublishRequest, task: TaskDefinition
) -> PublishRequest:
    """Return the request with the GPU types of a new board; a board that exists keeps its own."""
    board = await store.boards.find(request.board_name(task))
    gpus = await default_gpus(store, runners, request, task, board=board)
    return replace(request, gpus=gpus) if board is None else request


def no_gpu(task: TaskDefinition) -> UserError:
    """Return the error for a task that no known GPU type fits."""
    return UserError(
        "no-gpu",
        f"no connected worker has a GPU type for this task (device {task.device}), and task.yml "
        "names none; start a worker, or choose GPU types with the option gpus",
    )
