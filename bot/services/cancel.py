"""Stops a person's own submission, queued or running."""

from bot.domain.errors import UserError
from bot.domain.ids import PersonId, SubmissionId
from bot.ports import Store
from bot.services.lookup import find_submission


async def cancel(store: Store, person: PersonId, submission_id: SubmissionId) -> int:
    """Ask for the end of every unfinished job; gives how many there were, and notes who asked.

    UserError for somebody else's submission and for one that does not exist.
    """
    submission = await find_submission(store, submission_id)
    if submission.person != person:
        raise UserError(
            "not-yours", f"submission {submission_id} is somebody else's; cancel your own"
        )
    stopped = await store.jobs.request_cancel(submission_id)
    if stopped:
        await store.audit.record(person, "cancel", f"submission {submission_id}", "")
    return stopped
