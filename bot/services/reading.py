"""Shows a submission to those who may see it: all of it, or what its source cannot be told from."""

from dataclasses import replace

from bot.domain.access import Viewer
from bot.domain.disclosure import without_quotes
from bot.domain.ids import SubmissionId, is_the_houses
from bot.domain.records import StoredFile
from bot.domain.status import JobStatus, SubmissionStatus
from bot.ports import Clock, Store
from bot.services.lookup import seen_submission
from bot.services.profiles import profile_files
from bot.services.status import status


async def read_submission(
    store: Store, clock: Clock, viewer: Viewer, number: SubmissionId
) -> SubmissionStatus:
    """Where it stands; UserError `unknown-submission` where it does not exist for the viewer.

    Others get no log, no warning and no exception's words as long as its source is hidden from
    them: compilers and programs quote it.
    """
    await seen_submission(store, viewer, number)
    found = await status(store, number)
    if _is_whole(found, clock, viewer):
        return found
    submission = replace(found.submission, warning="")
    jobs = tuple(_without_log(each) for each in found.jobs)
    return replace(found, submission=submission, jobs=jobs)


async def read_files(
    store: Store, clock: Clock, viewer: Viewer, number: SubmissionId
) -> tuple[StoredFile, ...]:
    """The files that its profile left; none for those who get no log."""
    submission = await seen_submission(store, viewer, number)
    found = await status(store, number)
    return await profile_files(store, submission) if _is_whole(found, clock, viewer) else ()


def _is_whole(found: SubmissionStatus, clock: Clock, viewer: Viewer) -> bool:
    """Whether the viewer may see everything that its source could be told from."""
    submission, board = found.submission, found.board
    own = viewer.sees_all or submission.person == viewer.person
    if is_the_houses(submission.id):
        return own or board.belongs_to(viewer)
    return own or board.access.shows_sources(is_open=board.is_open(clock.now()))


def _without_log(job: JobStatus) -> JobStatus:
    if job.evaluation is None:
        return job
    return replace(job, evaluation=without_quotes(job.evaluation))
