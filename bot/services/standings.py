"""Gives a board's standings per GPU type, and who is absent from them and why."""

from dataclasses import replace

from bot.domain.access import Viewer
from bot.domain.board import Board, TaskVersion
from bot.domain.disclosure import QUOTING
from bot.domain.errors import UserError, unknown_name
from bot.domain.leaderboard import BoardStandings
from bot.domain.speed_of_light import speed_of_light
from bot.ports import Store
from bot.services.leaderboards import leaderboard, task_version
from bot.services.lookup import find_board
from runners.contract.gpus import spelled
from runners.contract.task import Grader


async def standings(
    store: Store,
    viewer: Viewer,
    board_name: str,
    gpu: str | None = None,
    *,
    version: int | None = None,
) -> tuple[BoardStandings, ...]:
    """The leaderboards of a board, of its present task version unless told otherwise."""
    board = await find_board(store, viewer, board_name)
    gpus = board.gpus if gpu is None else (_spelled(gpu, board),)
    wanted = await _version(store, board, version)
    own = board.belongs_to(viewer)
    found = [await _standings(store, board, wanted, each, own=own) for each in gpus]
    if viewer.sees_all or board.access.shows_sources(is_open=True):
        return tuple(found)
    return tuple(map(_without_quotes, found))


def _without_quotes(found: BoardStandings) -> BoardStandings:
    """Without the words of exceptions: nobody but the owner of a hidden source is told those."""
    refused = tuple(
        replace(each, message="") if each.verdict in QUOTING else each for each in found.refused
    )
    return replace(found, refused=refused, quotes=False)


def _spelled(gpu: str, board: Board) -> str:
    """The GPU type as the board spells it."""
    found = spelled(gpu, board.gpus)
    if found is None:
        raise unknown_name("gpu", gpu, board.gpus)
    return found


async def _version(store: Store, board: Board, number: int | None) -> TaskVersion:
    if number is None:
        return await task_version(store, board.task_version)
    versions = await store.boards.versions(board.id)
    for version in versions:
        if version.number == number:
            return version
    raise UserError(
        "unknown-version",
        f"leaderboard {board.name!r} has no task version {number}; "
        f"there are: {', '.join(str(each.number) for each in versions)}",
    )


async def _standings(
    store: Store, board: Board, version: TaskVersion, gpu: str, *, own: bool
) -> BoardStandings:
    found = await leaderboard(store, version.id, gpu)
    task, reference = version.definition, found.reference
    # That a reference cannot be timed moves nothing: its creator is told as of now.
    now = await store.references.of(version.id, gpu) if own else None
    return BoardStandings(
        board=board,
        version=version.number,
        gpu=gpu,
        entries=found.entries,
        refused=found.refused,
        note=task.version_note,
        speed_of_light_ns=speed_of_light(task, gpu),
        reference=None if reference is None else reference.value,
        reference_failure="" if now is None else now.failure,
        in_process=task.grader is Grader.POPCORN,
        moves=found.moves,
    )
