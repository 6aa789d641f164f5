"""Gives a board's standings per GPU type, and who is absent from them and why."""

from dataclasses import dataclass, replace

from bot.domain.access import Viewer
from bot.domain.board import Board, TaskVersion
from bot.domain.disclosure import PUBLIC_STAGES, disclosed
from bot.domain.errors import UserError, unknown_name
from bot.domain.ids import PersonId
from bot.domain.ranking import rank
from bot.domain.score import ScoreValue, Standing
from bot.domain.speed_of_light import speed_of_light
from bot.ports import Refusal, Store
from bot.services.lookup import find_board
from runners.contract.task import Grader


@dataclass(frozen=True, slots=True)
class BoardStandings:
    """One leaderboard: one task version on one GPU type.

    `refused` has, for each person without a score here, the latest ranked run that did not pass;
    `note` is what the version's author says about it, `speed_of_light_ns` the time that the card's
    memory allows at the least and `reference` the one of the task's own reference, where they are
    known. `reference_failure` tells the board's creator why there is no time of the reference;
    `in_process` whether the task's own evaluation timed the submissions, with nothing that
    confirms it.
    """

    board: Board
    version: int
    gpu: str
    entries: tuple[Standing, ...]
    refused: tuple[Refusal, ...]
    note: str = ""
    speed_of_light_ns: float | None = None
    reference: ScoreValue | None = None
    reference_failure: str = ""
    in_process: bool = False


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
    task_version = await _version(store, board, version)
    found = [await _standings(store, board, task_version, each) for each in gpus]
    if not board.belongs_to(viewer):
        found = [replace(each, reference_failure="") for each in found]
    return tuple(found)


def _spelled(gpu: str, board: Board) -> str:
    """The GPU type as the board spells it."""
    for name in board.gpus:
        if name.casefold() == gpu.casefold():
            return name
    raise unknown_name("gpu", gpu, board.gpus)


async def _version(store: Store, board: Board, number: int | None) -> TaskVersion:
    versions = await store.boards.versions(board.id)
    for version in versions:
        if version.id == board.task_version if number is None else version.number == number:
            return version
    raise UserError(
        "unknown-version",
        f"leaderboard {board.name!r} has no task version {number}; "
        f"there are: {', '.join(str(each.number) for each in versions)}",
    )


async def _standings(store: Store, board: Board, version: TaskVersion, gpu: str) -> BoardStandings:
    entries = rank(await store.results.scores(version.id, gpu))
    ranked = {entry.score.person for entry in entries}
    refused = await _refused(store, version, gpu, ranked)
    task = version.definition
    light = speed_of_light(task, gpu)
    reference = await store.references.of(version.id, gpu)
    return BoardStandings(
        board=board,
        version=version.number,
        gpu=gpu,
        entries=entries,
        refused=refused,
        note=task.version_note,
        speed_of_light_ns=light,
        reference=None if reference is None else reference.value,
        reference_failure="" if reference is None else reference.failure,
        in_process=task.grader is Grader.POPCORN,
    )


async def _refused(
    store: Store, version: TaskVersion, gpu: str, ranked: set[PersonId]
) -> tuple[Refusal, ...]:
    return tuple(
        [
            replace(refusal, message=await _public_message(store, refusal))
            for refusal in await store.results.refusals(version.id, gpu)
            if refusal.person not in ranked
        ]
    )


async def _public_message(store: Store, refusal: Refusal) -> str:
    """The message without what the ranked run's inputs could be told from."""
    if refusal.stage in PUBLIC_STAGES:
        return refusal.message
    for stored in await store.results.evaluations(refusal.submission):
        if stored.gpu == refusal.gpu:
            return disclosed(stored.evaluation).message
    return ""
