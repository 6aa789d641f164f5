"""Puts a task on the board of its name: a new board, a new version, or nothing when unchanged."""

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from bot.domain.board import Board, NewBoard
from bot.domain.errors import UserError
from bot.domain.ids import PersonId
from bot.domain.task_file import digest
from bot.ports import Clock, Store
from runners.contract.task import TaskDefinition

_BOARD = re.compile(r"(?![0-9]+$)[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
"""One word that a heading can name, and no number, which would be taken for a submission's."""
_GPU = re.compile(r"[A-Za-z0-9][A-Za-z0-9!_.+-]{0,39}")


@dataclass(frozen=True, slots=True)
class PublishRequest:
    """A task to publish, and how its board is to be.

    No `name`: the task's. No `gpus`: the board's present ones, else the task's. No `deadline`:
    the board's present one, unless `endless` opens the board for ever.
    """

    person: PersonId
    task: TaskDefinition
    name: str | None = None
    gpus: tuple[str, ...] = ()
    deadline: datetime | None = None
    endless: bool = False

    @property
    def board_name(self) -> str:
        """The name of the board."""
        return self.name or self.task.name


class Change(StrEnum):
    """What publishing did."""

    CREATED = "created"
    """There was no board of this name."""
    NEW_VERSION = "new-version"
    """The task differs: new submissions are judged by the new version."""
    CONFIGURED = "configured"
    """Only the GPU types or the deadline differ."""
    UNCHANGED = "unchanged"
    """Everything was so already."""


@dataclass(frozen=True, slots=True)
class Published:
    """The board after publishing, its task version's number, and what changed."""

    board: Board
    version: int
    change: Change


async def publish(store: Store, clock: Clock, request: PublishRequest) -> Published:
    """Create or update a board; UserError when it is somebody else's or would be useless."""
    _check(request, clock.now())
    board = await store.boards.find(request.board_name)
    published = await (_create(store, request) if board is None else _update(store, request, board))
    if published.change is not Change.UNCHANGED:
        await store.audit.record(
            request.person,
            f"publish-{published.change}",
            f"board {published.board.name} version {published.version}",
            request.task.version_note,
        )
    return published


def _check(request: PublishRequest, now: datetime) -> None:
    if not _BOARD.fullmatch(request.board_name):
        raise UserError(
            "bad-board-name",
            f"{request.board_name!r} is no name for a leaderboard; use letters, digits, '-', '_' "
            "and '.', at most 64, not digits alone, as in 'vector-add'",
        )
    for gpu in request.gpus or request.task.gpus:
        if not _GPU.fullmatch(gpu):
            raise UserError("bad-gpu", f"{gpu!r} is no GPU type; write one such as H100 or CPU")
    if request.deadline is None:
        return
    if request.endless:
        raise UserError("bad-deadline", "give a deadline or ask for none, not both")
    if request.deadline <= now:
        raise UserError("bad-deadline", "the deadline is in the past; choose a later one")


async def _create(store: Store, request: PublishRequest) -> Published:
    gpus = tuple(dict.fromkeys(request.gpus or request.task.gpus))
    if not gpus:
        raise UserError(
            "no-gpu", f"name the GPU types of leaderboard {request.board_name!r}, such as H100"
        )
    new = NewBoard(request.board_name, gpus, request.deadline, request.person)
    board = await store.boards.publish(new, request.task, digest(request.task))
    return Published(board, 1, Change.CREATED)


async def _update(store: Store, request: PublishRequest, board: Board) -> Published:
    if board.creator != request.person:
        raise UserError(
            "not-yours",
            f"leaderboard {board.name!r} belongs to somebody else; choose another name",
        )
    gpus = tuple(dict.fromkeys(request.gpus)) or board.gpus
    deadline = None if request.endless else request.deadline or board.deadline
    await store.boards.add_version(board.id, request.task, digest(request.task))
    if (gpus, deadline) != (board.gpus, board.deadline):
        await store.boards.configure(board.id, gpus, deadline)
    after = await _read(store, board)
    change = Change.UNCHANGED
    if after.task_version != board.task_version:
        change = Change.NEW_VERSION
    elif (after.gpus, after.deadline) != (board.gpus, board.deadline):
        change = Change.CONFIGURED
    version = await store.boards.version(after.task_version)
    return Published(after, version.number if version else 0, change)


async def _read(store: Store, board: Board) -> Board:
    return await store.boards.get(board.id) or board
