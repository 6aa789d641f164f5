"""Stops a person's own submission, queued or running."""

from bot.domain.errors import UserError
from bot.domain.ids import PersonId, SubmissionId
from bot.domain.submission import Submission
from bot.ports import Store


async def cancel(store: Store, person: PersonId, submission_id: SubmissionId) -> int:
    """Ask for the end of every unfinished job; gives how many there were.

    UserError for somebody else's submission and for one that does not exist.
    """
    submission = await find_submission(store, submission_id)
    if submission.person != person:
        raise UserError(
            "not-yours", f"submission {submission_id} is somebody else's; cancel your own"
        )
    return await store.jobs.request_cancel(submission_id)


async def find_submission(store: Store, submission_id: SubmissionId) -> Submission:
    """The submission of this number; UserError `unknown-submission` when there is none."""
    submission = await store.submissions.get(submission_id)
    if submission is None:
        raise UserError(
            "unknown-submission",
            f"there is no submission {submission_id}; your history lists the ones you made",
        )
    return submission
