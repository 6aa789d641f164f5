"""Tests of how jobs move and what they make of their submission."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.job import (
    MOST_ATTEMPTS,
    PRIORITIES,
    JobState,
    attempts_after_loss,
    backoff,
    next_turn,
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


@given(st.lists(st.integers(0, 4), max_size=40))
def test_before_the_first_claim_a_persons_kth_job_has_turn_k(people: list[int]) -> None:
    turns: dict[int, list[int]] = {}
    for person in people:
        mine = turns.setdefault(person, [])
        mine.append(next_turn(0, max(mine, default=0)))
    assert all(mine == list(range(1, len(mine) + 1)) for mine in turns.values())


@given(present=st.integers(0, 10**6), waiting=st.integers(0, 10**6))
def test_a_new_job_comes_after_the_present_turn_and_its_persons_others(
    present: int, waiting: int
) -> None:
    turn = next_turn(present, waiting)
    assert turn > max(present, waiting)
    assert turn - 1 in {present, waiting}


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
