"""Gives the source of a submission to those who may see it."""

from dataclasses import dataclass

from bot.domain.access import SourceVisibility, Viewer
from bot.domain.board import Board
from bot.domain.errors import UserError
from bot.domain.ids import SubmissionId
from bot.domain.times import show_deadline
from bot.ports import Clock, Store
from bot.services.lookup import seen_submission


@dataclass(frozen=True, slots=True)
class Source:
    """A submitted file."""

    submission: SubmissionId
    file_name: str
    text: str


async def source(store: Store, clock: Clock, viewer: Viewer, submission_id: SubmissionId) -> Source:
    """One's own source at any time, somebody else's as its board has it."""
    submission = await seen_submission(store, viewer, submission_id)
    if submission.person != viewer.person:
        board = await store.boards.get(submission.board)
        if board is None:
            raise LookupError(f"board {submission.board} of submission {submission_id} is gone")
        if not shows_sources(board, clock):
            raise _hidden(submission_id, board)
    text = await store.submissions.source(submission_id)
    return Source(submission_id, submission.file_name, text)


def shows_sources(board: Board, clock: Clock) -> bool:
    """Whether whoever sees the board may read, as of now, what others have submitted to it."""
    return board.access.shows_sources(is_open=board.is_open(clock.now()))


def _hidden(submission: SubmissionId, board: Board) -> UserError:
    theirs = f"submission {submission} is somebody else's"
    if board.access.source is SourceVisibility.NEVER:
        words = f"{theirs}, and its board shows nobody's source to others"
        return UserError("hidden-source", words)
    if board.deadline is None:
        return UserError("hidden-source", f"{theirs}, and its board never closes")
    when = f"after {show_deadline(board.deadline)}"
    words = f"{theirs}; its source can be seen {when}"
    return UserError("hidden-source", words, {when: board.deadline})
