"""Stops a person's own submission, queued or running."""

from bot.domain.access import Viewer
from bot.domain.ids import SubmissionId
from bot.ports import Store
from bot.services.lookup import own_submission


async def cancel(store: Store, viewer: Viewer, submission_id: SubmissionId) -> int:
    """Ask for the end of every unfinished job; gives how many there were, and notes who asked.

    UserError for somebody else's submission and for one that does not exist.
    """
    await own_submission(store, viewer, submission_id)
    async with store.transaction() as tx:
        stopped = await tx.jobs.request_cancel(submission_id)
        if stopped:
            await tx.audit.record(viewer.person, "cancel", f"submission {submission_id}", "")
    return stopped
