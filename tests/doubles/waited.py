"""The status of a submission that does not exist."""

from datetime import UTC, datetime

from bot.domain.ids import JobId, PersonId, SubmissionId, TaskVersionId
from bot.domain.job import Job, JobState
from bot.domain.status import JobStatus, SubmissionStatus
from bot.domain.submission import Submission, SubmissionState
from runners.contract.evaluation import CPU
from runners.contract.task import Mode
from tests.doubles.factories import make_board

SEVEN = SubmissionId(7)
_NOW = datetime(2026, 7, 1, tzinfo=UTC)


def make_status(state: JobState) -> SubmissionStatus:
    """Submission 7 with one job on the CPU."""
    board = make_board()
    submission = Submission(
        SEVEN, PersonId(1), board.id, TaskVersionId(1), "k.py", "", Mode.TEST, (CPU,),
        SubmissionState.RUNNING, _NOW,
    )  # fmt: skip
    job = Job(
        JobId(1), SEVEN, PersonId(1), CPU, Mode.TEST, 1, 0, state, 1, 3, 0, None, None,
        cancel_requested=False, error=None, run_at=_NOW, created_at=_NOW, started_at=None,
        finished_at=None,
    )  # fmt: skip
    return SubmissionStatus(submission, board, (JobStatus(job),))
