"""Gives the source of a submission to those who may see it."""

from dataclasses import dataclass
from datetime import datetime

from bot.domain.deadline import show_deadline
from bot.domain.errors import UserError
from bot.domain.ids import PersonId, SubmissionId
from bot.ports import Clock, Store
from bot.services.lookup import find_submission


@dataclass(frozen=True, slots=True)
class Source:
    """A submitted file."""

    submission: SubmissionId
    file_name: str
    text: str


async def source(
    store: Store, clock: Clock, viewer: PersonId, submission_id: SubmissionId
) -> Source:
    """One's own source at any time, somebody else's once the board has closed."""
    submission = await find_submission(store, submission_id)
    if submission.person != viewer:
        board = await store.boards.get(submission.board)
        if board is None or board.is_open(clock.now()):
            deadline = None if board is None else board.deadline
            raise UserError("hidden-source", _hidden(submission_id, deadline))
    text = await store.submissions.source(submission_id)
    return Source(submission_id, submission.file_name, text)


def _hidden(submission: SubmissionId, deadline: datetime | None) -> str:
    if deadline is None:
        return f"submission {submission} is somebody else's, and its board never closes"
    return (
        f"submission {submission} is somebody else's; its source can be seen after "
        f"{show_deadline(deadline)}"
    )
