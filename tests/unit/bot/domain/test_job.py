"""Tests of how jobs move and what they make of their submission."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.ids import JobId, PersonId, SubmissionId
from bot.domain.job import (
    FINAL_STATES,
    MOST_ATTEMPTS,
    PRIORITIES,
    Job,
    JobState,
    after_cancel,
    after_failure,
    after_loss,
    after_lost_lease,
    after_return,
    attempts_after_loss,
    backoff,
    submission_state,
)
from bot.domain.submission import SubmissionState
from runners.contract.task import Mode


@pytest.mark.parametrize(("attempt", "seconds"), [(1, 2), (2, 4), (5, 32), (6, 60), (50, 60)])
def test_each_failed_attempt_doubles_the_wait_up_to_a_minute(attempt: int, seconds: int) -> None:
    assert backoff(attempt) == timedelta(seconds=seconds)


@given(given_attempts=st.integers(1, 100), losses=st.integers(0, 100))
def test_a_loss_is_made_up_for_until_there_were_too_many(given_attempts: int, losses: int) -> None:
    attempts = given_attempts
    for _ in range(losses):
        attempts = attempts_after_loss(attempts)
    assert attempts == max(given_attempts, min(given_attempts + losses, MOST_ATTEMPTS))


def test_a_quick_test_goes_before_a_ranked_run() -> None:
    assert set(PRIORITIES) == set(Mode)
    assert PRIORITIES[Mode.TEST] > PRIORITIES[Mode.BENCHMARK] > PRIORITIES[Mode.RANKED]


Q, R, S, F, C = JobState


@pytest.mark.parametrize(
    ("jobs", "state"),
    [
        ((Q, Q), SubmissionState.QUEUED),
        ((Q, R), SubmissionState.RUNNING),
        ((Q, S), SubmissionState.RUNNING),
        ((S, S), SubmissionState.FINISHED),
        ((S, C), SubmissionState.CANCELLED),
        ((C, F), SubmissionState.FAILED),
    ],
)
def test_a_submission_stands_where_its_jobs_let_it(
    jobs: tuple[JobState, ...], state: SubmissionState
) -> None:
    assert submission_state(jobs) is state


NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
RUNNING = Job(
    id=JobId(1),
    submission=SubmissionId(1),
    person=PersonId(1),
    gpu="CPU",
    mode=Mode.RANKED,
    priority=10,
    turn=1,
    state=JobState.RUNNING,
    attempt=1,
    max_attempts=3,
    fence=1,
    worker="w1",
    call="call-1",
    cancel_requested=False,
    error=None,
    run_at=NOW,
    created_at=NOW,
    started_at=NOW,
    finished_at=None,
)


def test_a_failed_attempt_waits_and_forgets_its_call() -> None:
    failed = after_failure(replace(RUNNING, attempt=2), "lost", NOW)
    assert (failed.state, failed.call, failed.worker) == (JobState.QUEUED, None, None)
    assert failed.run_at == NOW + timedelta(seconds=4)
    assert failed.error == "lost"


def test_what_failed_attempts_used_adds_up_and_what_lost_ones_used_does_not_count() -> None:
    used = replace(RUNNING, used_s=2.5)
    assert after_failure(used, "boom", NOW, used_s=1.5).used_s == 4.0
    for ended in (after_loss(used, "gone", NOW), after_lost_lease(used, NOW)):
        assert ended.used_s == 2.5
    assert used.leased.used_s == 2.5


def test_a_lost_lease_keeps_the_call_and_names_the_worker() -> None:
    lost = after_lost_lease(RUNNING, NOW)
    assert (lost.state, lost.call) == (JobState.QUEUED, "call-1")
    assert lost.error == "the worker vanished during attempt 1"


def test_a_lost_attempt_is_replaced_by_another() -> None:
    last = replace(RUNNING, attempt=3)
    for lost in (after_loss(last, "runner gone", NOW), after_lost_lease(last, NOW)):
        assert (lost.state, lost.attempt, lost.max_attempts) == (JobState.QUEUED, 3, 4)
        assert lost.run_at == NOW + timedelta(seconds=8)
    assert after_loss(last, "runner gone", NOW).error == "runner gone"
    assert after_loss(last, "gone", NOW).call is None


def test_a_job_that_kills_what_it_touches_ends_at_last() -> None:
    last = replace(RUNNING, attempt=MOST_ATTEMPTS, max_attempts=MOST_ATTEMPTS)
    assert after_loss(last, "gone", NOW).state is JobState.FAILED
    assert after_lost_lease(last, NOW).state is JobState.FAILED
    asked = replace(RUNNING, cancel_requested=True)
    assert after_loss(asked, "gone", NOW).state is JobState.CANCELLED


def test_a_job_handed_back_is_due_at_once_and_keeps_its_attempts() -> None:
    returned = after_return(RUNNING, NOW)
    assert (returned.state, returned.attempt, returned.run_at) == (JobState.QUEUED, 0, NOW)


@given(attempt=st.integers(1, 5), cancelled=st.booleans(), final=st.booleans())
def test_a_job_ends_exactly_when_nobody_may_try_it_again(
    attempt: int, *, cancelled: bool, final: bool
) -> None:
    job = replace(RUNNING, attempt=attempt, max_attempts=5, cancel_requested=cancelled)
    after = after_failure(job, "lost", NOW, final=final)
    assert (after.state in FINAL_STATES) == (cancelled or final or attempt == 5)
    assert (after.finished_at is not None) == (after.state in FINAL_STATES)
    assert (after.state is JobState.CANCELLED) == cancelled


def test_a_person_who_stops_a_job_ends_it() -> None:
    assert after_cancel(RUNNING, NOW).state is JobState.CANCELLED
    asked = replace(RUNNING, cancel_requested=True)
    assert after_return(asked, NOW).state is JobState.CANCELLED
    assert after_lost_lease(asked, NOW).state is JobState.CANCELLED
