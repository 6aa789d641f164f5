"""Finds what a person has named; errors list only what that person may see."""

from bot.domain.acceptance import not_yet_open
from bot.domain.board import Board, TaskVersion, Viewer
from bot.domain.errors import UserError, unknown_name
from bot.domain.ids import BoardId, SubmissionId, is_storable, is_system_submission
from bot.domain.submission import Submission
from bot.ports import Store
from runners.contract.task import TaskDefinition


async def visible_boards(store: Store, viewer: Viewer) -> tuple[Board, ...]:
    """Return the boards that the viewer may see, by name."""
    return tuple(each for each in await store.boards.all() if each.visible_to(viewer))


async def find_board(store: Store, viewer: Viewer, name: str) -> Board:
    """Return the board of this name; UserError `unknown-board` with the nearest names.

    A hidden board is refused in the same words as a missing one. UserError `not-open` for a board
    that opens to the viewer later.
    """
    board = await store.boards.find(name)
    _require_opened(board, viewer)
    if board is None or board.is_hidden or not board.visible_to(viewer):
        known = await visible_boards(store, viewer)
        raise unknown_name("board", name, [each.name for each in known])
    return board


async def visible_board(store: Store, viewer: Viewer, board: BoardId) -> Board:
    """Return the board that a message refers to; UserError when it was deleted or hidden since."""
    found = await store.boards.get(board)
    _require_opened(found, viewer)
    if found is None or not found.visible_to(viewer):
        raise UserError("unknown-board", "this leaderboard was deleted")
    return found


def _require_opened(board: Board | None, viewer: Viewer) -> None:
    if board is None or board.rules.opens_at is None or board.visible_to(viewer):
        return
    if board.announced_to(viewer) and not board.is_hidden:
        raise not_yet_open(f"leaderboard {board.name!r}", board.rules.opens_at)


async def board_of(store: Store, submission: Submission) -> Board:
    """Return a stored submission's board, without checking who may see it."""
    board = await store.boards.get(submission.board)
    if board is None:
        raise LookupError(f"board {submission.board} of submission {submission.id} is missing")
    return board


async def own_board(store: Store, viewer: Viewer, name: str) -> Board:
    """Return a board that the viewer may change, as its creator or as an admin."""
    board = await find_board(store, viewer, name)
    if not board.belongs_to(viewer):
        raise UserError("not-yours", f"leaderboard {name!r} belongs to another person")
    return board


async def find_task(store: Store, viewer: Viewer, name: str) -> tuple[Board, TaskVersion]:
    """Return a board with its current task version."""
    board = await find_board(store, viewer, name)
    version = await store.boards.version(board.task_version)
    if version is None:
        raise LookupError(f"board {board.name} has no task version {board.task_version}")
    return board, version


async def task_of(store: Store, viewer: Viewer, name: str) -> tuple[Board, TaskDefinition]:
    """Return a board with its current task."""
    board, version = await find_task(store, viewer, name)
    return board, version.definition


async def find_submission(store: Store, submission_id: SubmissionId) -> Submission:
    """Return the submission of this number; UserError `unknown-submission` when there is none."""
    storable = is_storable(submission_id)
    submission = await store.submissions.get(submission_id) if storable else None
    if submission is None:
        raise _unknown(submission_id)
    return submission


async def visible_submission(
    store: Store, viewer: Viewer, submission_id: SubmissionId
) -> Submission:
    """Return the viewer's own submission, or one to a board that they see; else UserError.

    Submissions of the system itself are only for the board's creator: their logs may quote hidden
    files. Those that confirm a submission have its source, so they are only for admins.
    """
    submission = await find_submission(store, submission_id)
    if submission.person != viewer.person:
        board = await store.boards.get(submission.board)
        if board is None or not board.visible_to(viewer):
            raise _unknown(submission_id)
        if is_system_submission(submission.id) and not board.belongs_to(viewer):
            raise _unknown(submission_id)
        if not viewer.sees_all and await store.confirmations.of_run(submission.id) is not None:
            raise _unknown(submission_id)
    return submission


async def own_submission(store: Store, viewer: Viewer, submission_id: SubmissionId) -> Submission:
    """Return one of the viewer's own submissions."""
    submission = await visible_submission(store, viewer, submission_id)
    if submission.person != viewer.person:
        raise UserError(
            "not-yours",
            f"submission {submission_id} belongs to another person; choose one of yours",
        )
    return submission


def _unknown(submission_id: SubmissionId) -> UserError:
    return UserError(
        "unknown-submission",
        f"there is no submission {submission_id}; check the number",
    )
