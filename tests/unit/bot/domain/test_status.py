"""Tests of the state of a submission over its jobs."""

import pytest

from bot.domain.ids import JobId, SubmissionId
from bot.domain.job import Job, JobState
from bot.domain.status import JobStatus, SubmissionStatus
from bot.domain.submission import Submission, SubmissionState
from runners.contract.task import Mode
from runners.contract.verdict import Verdict
from tests.doubles.factories import NOON, make_board, make_evaluation


def _status(mode: Mode, *jobs: tuple[JobState, Verdict | None]) -> SubmissionStatus:
    board = make_board()
    submission = Submission(
        SubmissionId(7), board.creator, board.id, board.task_version, "kernel.py", "hash",
        mode, ("CPU",), SubmissionState.QUEUED, NOON,
    )  # fmt: skip
    return SubmissionStatus(
        submission, board, tuple(_job(submission, state, verdict) for state, verdict in jobs)
    )


def _job(submission: Submission, state: JobState, verdict: Verdict | None) -> JobStatus:
    job = Job(
        id=JobId(1), submission=submission.id, person=submission.person, gpu="CPU",
        mode=submission.mode, priority=0, turn=1, state=state, attempt=1, max_attempts=3, fence=1,
        worker=None, call=None, cancel_requested=False, error=None, run_at=NOON, created_at=NOON,
        started_at=None, finished_at=None,
    )  # fmt: skip
    evaluation = None if verdict is None else make_evaluation(verdict=verdict)
    return JobStatus(job, evaluation=evaluation)


PASSED = (JobState.SUCCEEDED, Verdict.PASSED)
WRONG = (JobState.SUCCEEDED, Verdict.WRONG_ANSWER)
RUNNING = (JobState.RUNNING, None)


def test_a_submission_is_final_when_all_its_jobs_are() -> None:
    running = _status(Mode.TEST, PASSED, RUNNING)
    assert (running.state, running.is_final) == (SubmissionState.RUNNING, False)
    ended = _status(Mode.TEST, PASSED, WRONG)
    assert (ended.state, ended.is_final) == (SubmissionState.FINISHED, True)


@pytest.mark.parametrize(
    ("mode", "jobs", "may"),
    [
        (Mode.TEST, (PASSED, PASSED), True),
        (Mode.RANKED, (PASSED,), False),
        (Mode.TEST, (PASSED, WRONG), False),
        (Mode.TEST, (PASSED, RUNNING), False),
        (Mode.TEST, ((JobState.CANCELLED, None),), False),
    ],
)
def test_only_what_passed_in_another_mode_may_be_ranked(
    mode: Mode, jobs: tuple[tuple[JobState, Verdict | None], ...], *, may: bool
) -> None:
    assert _status(mode, *jobs).may_be_ranked is may


def test_a_job_that_has_told_nothing_yet_has_done_none_of_no_cases() -> None:
    (waiting,) = _status(Mode.TEST, (JobState.QUEUED, None)).jobs
    assert (waiting.stage, waiting.done, waiting.total) == (None, 0, 0)
