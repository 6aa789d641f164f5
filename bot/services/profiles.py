"""Gives the files that a submission's profile left: whoever may see its report may have them."""

from bot.domain.records import StoredFile
from bot.domain.submission import Submission
from bot.ports import Store
from runners.contract.task import Mode


async def profile_files(store: Store, submission: Submission) -> tuple[StoredFile, ...]:
    """The profiler's reports, by GPU type; none of any other mode."""
    if submission.mode is not Mode.PROFILE:
        return ()
    return await store.results.files(submission.id)
