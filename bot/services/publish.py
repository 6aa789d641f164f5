"""Puts a task on the board of its name: a new board, a new version, or nothing when unchanged."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from bot.domain.access import Access
from bot.domain.board import Board, NewBoard
from bot.domain.errors import UserError, board_moved
from bot.domain.ids import PersonId, TaskVersionId
from bot.domain.pins import ANY, Pins, pinned, show_pins
from bot.domain.requirements import has_device
from bot.domain.task_file import digest
from bot.ports import Clock, Store
from runners.contract.gpus import gpu_types
from runners.contract.task import GPU_NAME, TaskDefinition

NO_BOARD = TaskVersionId(0)
"""In place of a version: there must be no board of the name."""
_BOARD = re.compile(r"(?![0-9]+$)[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
"""One word that a heading can name, and no number, which would be taken for a submission's."""


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
    as_admin: bool = False
    """An admin may change a board that is somebody else's."""
    access: Access | None = None
    """Who may see the board; None leaves it as it is, and a new one public."""
    onto: TaskVersionId | None = None
    """The task version that the board must still have, NO_BOARD for a new one; None: any."""
    pins: Pins = ()
    """Changes of the pools that alone time its ranked jobs, as `bot.domain.pins` reads them."""

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
    """Only the GPU types, the deadline, the pools or who may see it differ."""
    UNCHANGED = "unchanged"
    """Everything was so already."""


@dataclass(frozen=True, slots=True)
class Published:
    """The board after publishing, its task version's number and note, and what changed."""

    board: Board
    version: int
    change: Change
    note: str = ""

    @property
    def told(self) -> str:
        """What publishing did, as a sentence."""
        words = f"{self.board.name} on {', '.join(self.board.gpus)}"
        match self.change:
            case Change.CREATED:
                return f"{words} is published."
            case Change.NEW_VERSION:
                return f"{words} has task version {self.version} now."
            case Change.CONFIGURED | Change.UNCHANGED:
                return f"{words}: {self.change}, task version {self.version}."


async def publish(store: Store, clock: Clock, request: PublishRequest) -> Published:
    """Create or update a board; UserError when it is somebody else's or would be useless."""
    board = await vet(store, clock, request)
    published = await (_create(store, request) if board is None else _update(store, request, board))
    if published.change is not Change.UNCHANGED:
        await store.audit.record(
            request.person,
            f"publish-{published.change}",
            f"board {published.board.name} version {published.version}",
            request.task.version_note,
        )
    return published


async def vet(store: Store, clock: Clock, request: PublishRequest) -> Board | None:
    """The board that is there already; UserError when the request cannot be published."""
    board = await store.boards.find(request.board_name)
    _require_name(request.board_name)
    gpus = gpus_of(request, board)
    _require_gpus(request.board_name, request.task, gpus)
    pinned(() if board is None else board.pins, request.pins, gpus)
    _require_deadline(request, board, clock.now())
    if board is not None and board.creator != request.person and not request.as_admin:
        raise UserError(
            "not-yours",
            f"leaderboard {board.name!r} belongs to somebody else; choose another name",
        )
    _require_base(request, board)
    return board


def _require_base(request: PublishRequest, board: Board | None) -> None:
    """What was shown to the person before they agreed must still be so."""
    if request.onto is None:
        return
    if board is None and request.onto != NO_BOARD:
        raise UserError("board-gone", f"leaderboard {request.board_name!r} was deleted meanwhile")
    if board is not None and request.onto == NO_BOARD:
        raise UserError(
            "board-exists",
            f"there is a leaderboard {board.name!r} already; update it, or choose another name",
        )
    if board is not None and request.onto != board.task_version:
        raise board_moved(board.name)


async def is_new(store: Store, request: PublishRequest) -> bool:
    """Whether the board has never had this state of the task."""
    board = await store.boards.find(request.board_name)
    versions = () if board is None else await store.boards.versions(board.id)
    return digest(request.task) not in {version.digest for version in versions}


def gpus_of(request: PublishRequest, board: Board | None) -> tuple[str, ...]:
    """The GPU types that the board will have, each once."""
    present = () if board is None else board.gpus
    return gpu_types(request.gpus or present or request.task.gpus)


def _require_name(name: str) -> None:
    if not _BOARD.fullmatch(name):
        raise UserError(
            "bad-board-name",
            f"{name!r} is no name for a leaderboard; use letters, digits, '-', '_' "
            "and '.', at most 64, not digits alone, as in 'vector-add'",
        )


def _require_gpus(board_name: str, task: TaskDefinition, gpus: Sequence[str]) -> None:
    if not gpus:
        raise UserError("no-gpu", f"name the GPU types of leaderboard {board_name!r}, such as H100")
    for gpu in gpus:
        if not GPU_NAME.fullmatch(gpu):
            raise UserError("bad-gpu", f"{gpu!r} is no GPU type; write one such as H100 or CPU")
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
        raise UserError("bad-deadline", "give a deadline or ask for none, not both")
    stays = board is not None and board.deadline == request.deadline
    if request.deadline <= now and not stays:
        raise UserError("bad-deadline", "the deadline is in the past; choose a later one")


async def _create(store: Store, request: PublishRequest) -> Published:
    gpus = gpus_of(request, None)
    access = request.access or Access()
    pins = pinned((), request.pins, gpus)
    new = NewBoard(request.board_name, gpus, request.deadline, request.person, access, pins)
    board = await store.boards.publish(new, request.task, digest(request.task))
    await _record_pins(store, request, board, ())
    return Published(board, 1, Change.CREATED, request.task.version_note)


async def _update(store: Store, request: PublishRequest, board: Board) -> Published:
    gpus = gpus_of(request, board)
    deadline = None if request.endless else request.deadline or board.deadline
    version = await store.boards.add_version(
        board.id, request.task, digest(request.task), request.onto
    )
    if (gpus, deadline) != (board.gpus, board.deadline):
        await store.boards.configure(board.id, gpus, deadline)
    if request.access is not None and request.access != board.access:
        await store.boards.restrict(board.id, request.access)
    pins = pinned(board.pins, request.pins, gpus)
    if pins != board.pins:
        await _record_pins(store, request, await store.boards.pin(board.id, pins), board.pins)
    after = await store.boards.get(board.id) or board
    change = Change.UNCHANGED
    if after.task_version != board.task_version:
        change = Change.NEW_VERSION
    elif _outside(after) != _outside(board):
        change = Change.CONFIGURED
    return Published(after, version.number, change, version.definition.version_note)


async def _record_pins(store: Store, request: PublishRequest, board: Board, before: Pins) -> None:
    if board.pins != before:
        words = f"{show_pins(before) or ANY} -> {show_pins(board.pins) or ANY}"
        await store.audit.record(request.person, "pin-pools", f"board {board.name}", words)


def _outside(board: Board) -> tuple[object, ...]:
    """What is told of a board beside its task."""
    return board.gpus, board.deadline, board.access, board.pins


async def published_already(store: Store, request: PublishRequest) -> Published | None:
    """What a publishing that was cut off has done: the board, where it has just this task now.

    Only for a request with `onto` whose publishing had begun; anybody else must be refused.
    """
    board = await store.boards.find(request.board_name)
    version = None if board is None else await store.boards.version(board.task_version)
    if board is None or version is None or version.digest != digest(request.task):
        return None
    new = request.onto == NO_BOARD
    change = Change.CREATED if new else Change.NEW_VERSION
    return Published(board, version.number, change, version.definition.version_note)
