"""The source, log and profile of a submission, for viewers who may read them."""

from dataclasses import dataclass, replace

from bot.domain.board import Board, SourceVisibility, Viewer
from bot.domain.errors import UserError
from bot.domain.ids import SubmissionId, is_system_submission
from bot.domain.records import StoredFile
from bot.domain.status import JobStatus, SubmissionStatus, without_quotes
from bot.domain.submission import Submission
from bot.domain.times import show_deadline
from bot.ports import Clock, Store
from bot.services.lookup import visible_submission
from bot.services.status import submission_status
from runners.contract.task import Mode


@dataclass(frozen=True, slots=True)
class Source:
    """A submitted file."""

    submission: SubmissionId
    file_name: str
    text: str


async def source(store: Store, clock: Clock, viewer: Viewer, submission_id: SubmissionId) -> Source:
    """Return one's own source at any time, another person's if its board shows it."""
    submission = await visible_submission(store, viewer, submission_id)
    if submission.person != viewer.person:
        board = await store.boards.get(submission.board)
        if board is None:
            raise LookupError(f"board {submission.board} of submission {submission_id} is gone")
        if not shows_sources(board, clock):
            raise _hidden(submission_id, board)
    text = await store.submissions.source(submission_id)
    return Source(submission_id, submission.file_name, text)


def shows_sources(board: Board, clock: Clock) -> bool:
    """Return whether everyone who sees the board may now read the sources submitted to it."""
    return board.access.shows_sources(is_open=board.is_open(clock.now()))


def _hidden(submission: SubmissionId, board: Board) -> UserError:
    theirs = f"submission {submission} belongs to another person"
    if board.access.source is SourceVisibility.NEVER:
        words = f"{theirs}, and its board never shows sources to others"
        return UserError("hidden-source", words)
    if board.deadline is None:
        words = f"{theirs}; its board shows sources to others after its deadline, and has none yet"
        return UserError("hidden-source", words)
    when = f"after {show_deadline(board.deadline)}"
    words = f"{theirs}; its board shows sources to others {when}, its deadline"
    return UserError("hidden-source", words, {when: board.deadline})


async def profile_files(store: Store, submission: Submission) -> tuple[StoredFile, ...]:
    """Return the profiler's reports by GPU type; empty for other modes."""
    if submission.mode is not Mode.PROFILE:
        return ()
    return await store.results.files(submission.id)


async def read_submission(
    store: Store, clock: Clock, viewer: Viewer, number: SubmissionId
) -> SubmissionStatus:
    """Return a submission's status; UserError `unknown-submission` if hidden from the viewer.

    While its source is hidden, other people get no log, warning or exception text, because
    compilers and programs quote the source there.
    """
    await visible_submission(store, viewer, number)
    found = await submission_status(store, number)
    if _is_whole(found, clock, viewer):
        return found
    submission = replace(found.submission, warning="")
    jobs = tuple(_without_log(each) for each in found.jobs)
    return replace(found, submission=submission, jobs=jobs)


async def read_files(
    store: Store, clock: Clock, viewer: Viewer, number: SubmissionId
) -> tuple[StoredFile, ...]:
    """Return the files of its profile; none for viewers who get no log."""
    submission = await visible_submission(store, viewer, number)
    found = await submission_status(store, number)
    return await profile_files(store, submission) if _is_whole(found, clock, viewer) else ()


def _is_whole(found: SubmissionStatus, clock: Clock, viewer: Viewer) -> bool:
    """Return whether the viewer may see everything that could reveal its source."""
    submission, board = found.submission, found.board
    own = viewer.sees_all or submission.person == viewer.person
    if is_system_submission(submission.id):
        return own or board.belongs_to(viewer)
    return own or board.access.shows_sources(is_open=board.is_open(clock.now()))


def _without_log(job: JobStatus) -> JobStatus:
    if job.evaluation is None:
        return job
    return replace(job, evaluation=without_quotes(job.evaluation))
