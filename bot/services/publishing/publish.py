"""Publishes a task on the board of its name: a new board, a new version, or no change."""

import re
from collections.abc import Sequence
from datetime import datetime

from bot.domain.board import ANY, Access, Board, NewBoard, Pins, pinned, show_pins
from bot.domain.errors import UserError, board_moved
from bot.domain.publication import PublishChange, Published, PublishRequest
from bot.domain.requirements import has_device
from bot.domain.tasks.task_file import digest
from bot.ports import Clock, Store
from bot.services.publishing.request import NO_BOARD, named_gpus
from runners.contract.task import GPU_NAME, TaskDefinition

_BOARD = re.compile(r"(?![0-9]+$)[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
"""A board's name: one word that a header can contain; not a number, as a submission has."""


async def publish(
    store: Store, clock: Clock, request: PublishRequest, task: TaskDefinition
) -> Published:
    """Create or update a board; UserError if it belongs to somebody else or could not be used."""
    board = await validate_publish(store, clock, request, task)
    async with store.transaction() as tx:
        published = await (
            _create(tx, request, task) if board is None else _update(tx, request, task, board)
        )
        if published.change is not PublishChange.UNCHANGED:
            await tx.audit.record(
                request.person,
                f"publish-{published.change}",
                f"board {published.board.name} version {published.version}",
                task.version_note,
            )
    return published


async def validate_publish(
    store: Store, clock: Clock, request: PublishRequest, task: TaskDefinition
) -> Board | None:
    """Return the board that exists already; UserError when the request cannot be published."""
    name = request.board_name(task)
    board = await store.boards.find(name)
    _require_name(name)
    gpus = named_gpus(request, task, board)
    _require_gpus(name, task, gpus)
    pinned(() if board is None else board.pins, request.pins, gpus)
    _require_deadline(request, board, clock.now())
    if board is not None and board.creator != request.person and not request.as_admin:
        raise UserError(
            "not-yours",
            f"leaderboard {board.name!r} belongs to another person; choose another name",
        )
    _require_base(request, name, board)
    return board


def _require_base(request: PublishRequest, name: str, board: Board | None) -> None:
    """Require that what was shown to the person before they agreed is still true."""
    if request.onto is None:
        return
    if board is None and request.onto != NO_BOARD:
        raise UserError("board-gone", f"leaderboard {name!r} was deleted in the meantime")
    if board is not None and request.onto == NO_BOARD:
        raise UserError(
            "board-exists",
            f"leaderboard {board.name!r} already exists; update it, or choose another name",
        )
    if board is not None and request.onto != board.task_version:
        raise board_moved(board.name)


async def is_new(store: Store, request: PublishRequest, task: TaskDefinition) -> bool:
    """Return whether the board has never had exactly this task."""
    board = await store.boards.find(request.board_name(task))
    versions = () if board is None else await store.boards.versions(board.id)
    return digest(task) not in {version.digest for version in versions}


def _require_name(name: str) -> None:
    if not _BOARD.fullmatch(name):
        raise UserError(
            "bad-board-name",
            f"{name!r} is not a valid leaderboard name; use at most 64 letters, digits, '-', '_' "
            "and '.', not only digits, as in 'vector-add'",
        )


def _require_gpus(board_name: str, task: TaskDefinition, gpus: Sequence[str]) -> None:
    if not gpus:
        raise UserError(
            "no-gpu", f"choose the GPU types of leaderboard {board_name!r}, such as H100"
        )
    for gpu in gpus:
        if not GPU_NAME.fullmatch(gpu):
            raise UserError("bad-gpu", f"{gpu!r} is not a GPU type; write one such as H100 or CPU")
        if not has_device(task, gpu):
            raise UserError(
                "bad-gpu",
                f"leaderboard {board_name!r} cannot be for {gpu}: the task's device is "
                f"{task.device.value!r}; name other GPU types",
            )


def _require_deadline(request: PublishRequest, board: Board | None, now: datetime) -> None:
    if request.deadline is None:
        return
    if request.endless:
        raise UserError("bad-deadline", "set a deadline or remove it, not both")
    stays = board is not None and board.deadline == request.deadline
    if request.deadline <= now and not stays:
        raise UserError("bad-deadline", "the deadline is in the past; choose a later one")


async def _create(tx: Store, request: PublishRequest, task: TaskDefinition) -> Published:
    gpus = named_gpus(request, task, None)
    access = request.access or Access()
    pins = pinned((), request.pins, gpus)
    new = NewBoard(request.board_name(task), gpus, request.deadline, request.person, access, pins)
    board = await tx.boards.publish(new, task, digest(task))
    await _record_pins(tx, request, board, ())
    return Published(board, 1, PublishChange.CREATED, task.version_note)


async def _update(
    tx: Store, request: PublishRequest, task: TaskDefinition, board: Board
) -> Published:
    gpus = named_gpus(request, task, board)
    deadline = None if request.endless else request.deadline or board.deadline
    version = await tx.boards.add_version(board.id, task, digest(task), request.onto)
    if (gpus, deadline) != (board.gpus, board.deadline):
        await tx.boards.configure(board.id, gpus, deadline)
    if request.access is not None and request.access != board.access:
        await tx.boards.restrict(board.id, request.access)
    pins = pinned(board.pins, request.pins, gpus)
    if pins != board.pins:
        await _record_pins(tx, request, await tx.boards.pin(board.id, pins), board.pins)
    after = await tx.boards.get(board.id) or board
    change = PublishChange.UNCHANGED
    if after.task_version != board.task_version:
        change = PublishChange.NEW_VERSION
    elif _outside(after) != _outside(board):
        change = PublishChange.CONFIGURED
    return Published(after, version.number, change, version.definition.version_note)


async def _record_pins(tx: Store, request: PublishRequest, board: Board, before: Pins) -> None:
    if board.pins != before:
        words = f"{show_pins(before) or ANY} -> {show_pins(board.pins) or ANY}"
        await tx.audit.record(request.person, "pin-pools", f"board {board.name}", words)


def _outside(board: Board) -> tuple[object, ...]:
    """Return the board's properties apart from its task."""
    return board.gpus, board.deadline, board.access, board.pins


async def find_interrupted_publish(
    store: Store, request: PublishRequest, task: TaskDefinition
) -> Published | None:
    """Return what an interrupted publish stored; None unless the board now has exactly this task.

    Only for a request with `onto` whose publishing had begun; the caller refuses every other one.
    """
    board = await store.boards.find(request.board_name(task))
    version = None if board is None else await store.boards.version(board.task_version)
    if board is None or version is None or version.digest != digest(task):
        return None
    new = request.onto == NO_BOARD
    change = PublishChange.CREATED if new else PublishChange.NEW_VERSION
    return Published(board, version.number, change, version.definition.version_note)
