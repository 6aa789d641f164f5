"""Publishes an uploaded task on the board of its name: a new board, a new version, or no change.

Which GPU types a board gets is decided here; the rule for their names is in
`bot.domain.requirements`.
"""

import asyncio
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from pydantic import Base64Bytes, TypeAdapter

from bot.domain.acceptance import closes_early
from bot.domain.board import ANY, Access, Board, NewBoard, Pins, SeasonRules, apply_pins, show_pins
from bot.domain.errors import UserError, board_moved
from bot.domain.ids import TaskVersionId
from bot.domain.publication import Draft, PublishChange, Published, PublishRequest
from bot.domain.requirements import has_device, require_gpus, require_known_gpus
from bot.domain.tasks import competition
from bot.domain.tasks.bundle import TaskBundle, read_files, read_zip, solutions
from bot.domain.tasks.grading import same_program
from bot.domain.tasks.lint import lint
from bot.domain.tasks.task_file import ParsedTask, digest, read_task
from bot.domain.times import show_deadline
from bot.ports import Clock, Store
from bot.services.parser_process import ParserProcess
from runners.contract.gpus import gpu_types
from runners.contract.runner import Runner
from runners.contract.task import TaskDefinition

NO_BOARD = TaskVersionId(0)
"""Used in place of a task version: no board of this name may exist."""


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


TASKS = ParserProcess(10.0, patience_s=30.0)
"""The process in which untrusted tasks are read."""


async def read_upload(data: bytes, request: PublishRequest) -> tuple[TaskBundle, ParsedTask]:
    """Return the files of a zip and its task; UserError with file and line."""
    parsed = await TASKS.call(task_in, data, request)
    return await asyncio.to_thread(read_zip, data, name=request.zip_name), parsed


def task_in(data: Base64Bytes, request: PublishRequest) -> ParsedTask:
    """Return the task of a zip that came with this request; only called in its own process."""
    bundle = read_zip(data, name=request.zip_name)
    parsed = read_task(bundle, strict=request.strict, grader=request.grader)
    lint(parsed.task, solutions(bundle))
    return parsed


async def read_competition(
    data: bytes, request: PublishRequest
) -> tuple[tuple[Draft, ...], tuple[str, ...]]:
    """Return a draft of each board in a zip, and what was ignored; UserError with file and line."""
    parsed = await TASKS.call(competition_in, data)
    bundles = parsed.bundles(await asyncio.to_thread(read_files, data))
    definition = parsed.definition
    drafts = tuple(
        Draft(bundle, each.task, request.of_entry(entry), each.grading, definition)
        for bundle, each, entry in zip(bundles, parsed.tasks, definition.problems, strict=True)
    )
    return drafts, parsed.warnings


def competition_in(data: Base64Bytes) -> competition.ParsedCompetition:
    """Return the competition in a zip; only called in its own process."""
    return competition.read_competition(data)


def named_gpus(
    request: PublishRequest, task: TaskDefinition, board: Board | None
) -> tuple[str, ...]:
    """Return the GPU types of the request, else of its board, else of the task, without repeats."""
    present = () if board is None else board.gpus
    return gpu_types(request.gpus or present or task.gpus)


async def possible_gpus(
    store: Store, task: TaskDefinition, runners: Sequence[Runner] = ()
) -> tuple[str, ...]:
    """Return the GPU types that a board of this task can have, sorted.

    They are offered by these runners or a live worker, or named by the task, and fit its device.
    """
    offers = [await runner.capabilities() for runner in runners]
    offered = {gpu for offer in offers for gpu in offer.gpus}
    alive = {gpu for worker in await store.workers.alive() for gpu in worker.gpus or ()}
    known = offered | alive | set(gpu_types(task.gpus))
    return tuple(sorted(gpu for gpu in known if has_device(task, gpu)))


async def default_gpus(
    store: Store,
    request: PublishRequest,
    task: TaskDefinition,
    runners: Sequence[Runner] = (),
    *,
    board: Board | None,
) -> tuple[str, ...]:
    """Return the named GPU types, else every possible one; UserError `no-gpu` when none is."""
    gpus = named_gpus(request, task, board) or await possible_gpus(store, task, runners)
    if not gpus:
        raise no_gpu(task)
    return gpus


async def with_gpus(
    store: Store, request: PublishRequest, task: TaskDefinition, runners: Sequence[Runner] = ()
) -> PublishRequest:
    """Return the request with the GPU types of a new board; a board that exists keeps its own."""
    board = await store.boards.find(request.board_name(task))
    gpus = await default_gpus(store, request, task, runners, board=board)
    return replace(request, gpus=gpus) if board is None else request


def no_gpu(task: TaskDefinition) -> UserError:
    """Return the error for a task that no known GPU type fits."""
    return UserError(
        "no-gpu",
        f"no connected worker has a GPU type for this task (device {task.device}), and task.yml "
        "names none; start a worker, or choose GPU types with the option gpus",
    )


_BOARD = re.compile(r"(?![0-9]+$)[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
"""A board's name: one word that a header can contain; not a number, as a submission has."""


async def publish(
    store: Store,
    clock: Clock,
    request: PublishRequest,
    task: TaskDefinition,
    *,
    served: Collection[str] | None = (),
) -> Published:
    """Create or update a board; UserError if it belongs to another person or could not be used."""
    board = await validate_publish(store, clock, request, task, served=served)
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
    store: Store,
    clock: Clock,
    request: PublishRequest,
    task: TaskDefinition,
    *,
    served: Collection[str] | None = (),
) -> Board | None:
    """Return the existing board, None for a new one; UserError when it cannot be published.

    `served` are GPU types of runners that are not workers; if None, unknown types are accepted.
    """
    name = request.board_name(task)
    board = await store.boards.find(name)
    _require_name(name)
    if (ban := await store.moderation.ban_of(request.person)) is not None:
        raise ban.refusal
    if board is None:  # a deleted board would fail the other checks too
        _require_base(request, name, board)
    gpus = named_gpus(request, task, board)
    require_gpus(name, task, gpus)
    if served is not None:
        known = {gpu for worker in await store.workers.alive() for gpu in worker.gpus or ()}
        new = gpus if board is None else [gpu for gpu in gpus if gpu not in board.gpus]
        require_known_gpus(new, known.union(served))
    apply_pins(() if board is None else board.pins, request.pins, gpus)
    _require_deadline(request, name, board, clock.now())
    _require_opening(request, board)
    if board is not None and board.creator != request.person and not request.as_admin:
        raise UserError(
            "not-yours",
            f"leaderboard {board.name!r} belongs to another person; choose another name",
        )
    _require_base(request, name, board)
    return board


def _require_base(request: PublishRequest, name: str, board: Board | None) -> None:
    """Require that the board is still as it was shown to the person who confirmed."""
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


def _require_deadline(
    request: PublishRequest, name: str, board: Board | None, now: datetime
) -> None:
    if request.deadline is None:
        return
    if request.endless:
        raise UserError("bad-deadline", "set a deadline or remove it, not both")
    unchanged = board is not None and board.deadline == request.deadline
    if request.deadline <= now and not unchanged:
        raise UserError(
            "bad-deadline",
            f"the deadline is in the past: {show_deadline(request.deadline)} for leaderboard "
            f"{name!r}; choose a later one, or none (an empty field, or `podium task publish "
            "--no-deadline`)",
        )


def _require_opening(request: PublishRequest, board: Board | None) -> None:
    """Require that the board opens before it closes."""
    rules = request.rules or (None if board is None else board.rules)
    opens_at = None if rules is None else rules.opens_at
    kept = None if board is None or request.endless else board.deadline
    deadline = request.deadline or kept
    if opens_at is not None and deadline is not None and deadline <= opens_at:
        raise closes_early(request.name, opens_at)


async def _create(tx: Store, request: PublishRequest, task: TaskDefinition) -> Published:
    gpus = named_gpus(request, task, None)
    access = request.access or Access()
    pins = apply_pins((), request.pins, gpus)
    new = NewBoard(
        request.board_name(task),
        gpus,
        request.deadline,
        request.person,
        access,
        pins,
        request.rules or SeasonRules(),
        request.grader,
    )
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
    if request.rules is not None and request.rules != board.rules:
        await tx.boards.set_rules(board.id, request.rules)
    before = await tx.boards.version(board.task_version)
    kept = before is not None and same_program(before.definition, task)
    grader = request.grader or (board.grader if kept else None)
    if grader is not board.grader:
        await tx.boards.choose_grader(board.id, grader)
    pins = apply_pins(board.pins, request.pins, gpus)
    if pins != board.pins:
        await _record_pins(tx, request, await tx.boards.pin(board.id, pins), board.pins)
    after = await tx.boards.get(board.id) or board
    change = PublishChange.UNCHANGED
    if after.task_version != board.task_version:
        change = PublishChange.NEW_VERSION
    elif _settings(after) != _settings(board):
        change = PublishChange.CONFIGURED
    return Published(after, version.number, change, version.definition.version_note)


async def _record_pins(tx: Store, request: PublishRequest, board: Board, before: Pins) -> None:
    if board.pins != before:
        words = f"{show_pins(before) or ANY} -> {show_pins(board.pins) or ANY}"
        await tx.audit.record(request.person, "pin-pools", f"board {board.name}", words)


def _settings(board: Board) -> tuple[object, ...]:
    """Return the board's properties apart from its task."""
    return board.gpus, board.deadline, board.access, board.pins, board.rules, board.grader


async def find_interrupted_publish(
    store: Store, request: PublishRequest, task: TaskDefinition
) -> Published | None:
    """Return what an interrupted publish stored; None unless the board now has exactly this task.

    Only for a request with `onto` whose publishing had begun. For any other, the board may have had
    this task already.
    """
    board = await store.boards.find(request.board_name(task))
    version = None if board is None else await store.boards.version(board.task_version)
    if board is None or version is None or version.digest != digest(task):
        return None
    new = request.onto == NO_BOARD
    change = PublishChange.CREATED if new else PublishChange.NEW_VERSION
    return Published(board, version.number, change, version.definition.version_note)
