"""Finds what a person has named, or refuses with what there is."""

from bot.domain.board import Board
from bot.domain.errors import UserError, unknown_name
from bot.domain.ids import SubmissionId
from bot.domain.submission import Submission
from bot.ports import Store
from runners.contract.task import TaskDefinition


async def find_board(store: Store, name: str) -> Board:
    """The board of this name; UserError `unknown-board` with the nearest names."""
    board = await store.boards.find(name)
    if board is None:
        raise unknown_name("board", name, [each.name for each in await store.boards.all()])
    return board


async def task_of(store: Store, name: str) -> tuple[Board, TaskDefinition]:
    """A board with the task that it is judged by now."""
    board = await find_board(store, name)
    version = await store.boards.version(board.task_version)
    if version is None:
        raise LookupError(f"board {board.name} has no task version {board.task_version}")
    return board, version.definition


async def find_submission(store: Store, submission_id: SubmissionId) -> Submission:
    """The submission of this number; UserError `unknown-submission` when there is none."""
    submission = await store.submissions.get(submission_id)
    if submission is None:
        raise UserError(
            "unknown-submission",
            f"there is no submission {submission_id}; your history lists the ones you made",
        )
    return submission
