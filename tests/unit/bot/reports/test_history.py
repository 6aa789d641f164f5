"""Tests of the report of a person's submissions."""

from dataclasses import replace

import pytest

from bot.domain.confirmation import ConfirmationState
from bot.domain.ids import SubmissionId
from bot.domain.leaderboard import BoardStandings
from bot.domain.records import HistoryEntry, JobResult
from bot.domain.scoring import ScoreValue
from bot.domain.submission import ExclusionKind, Submission, SubmissionState
from bot.reports.blocks import Table, Text
from bot.reports.history import history_line, history_report, own_rank_line
from runners.contract.task import Mode
from runners.contract.verdict import Verdict
from tests.doubles.factories import NOON, make_board, make_score, rank


def _outcome(gpu: str, verdict: Verdict, value: ScoreValue | None = None) -> JobResult:
    return JobResult(SubmissionId(7), gpu, verdict, value)


PASSED = _outcome("H100", Verdict.PASSED, ScoreValue(29_140.0, 60.0))


def _entry(state: SubmissionState, *results: JobResult) -> HistoryEntry:
    board = make_board()
    submission = Submission(
        SubmissionId(7), board.creator, board.id, board.task_version, "kernel.py", "hash",
        Mode.RANKED, ("H100", "L4"), state, NOON,
    )  # fmt: skip
    return HistoryEntry(submission, "vectoradd", 2, results)


def _row(state: SubmissionState, *results: JobResult) -> tuple[str, ...]:
    table = history_report("ada", [_entry(state, *results)]).blocks[0]
    assert isinstance(table, Table)
    return table.rows[0]


def test_each_gpu_type_has_its_outcome() -> None:
    row = _row(SubmissionState.FINISHED, PASSED, _outcome("L4", Verdict.CRASHED))
    assert row == (
        "#7", "2026-11-01 12:00", "vectoradd", "2", "kernel.py", "ranked",
        "H100: 29.14 µs ± 0.06, L4: crashed",
    )  # fmt: skip


def test_one_submission_in_a_line_says_when_how_and_what_came_of_it() -> None:
    line = history_line(_entry(SubmissionState.FINISHED, PASSED))
    assert line == "#7, 2026-11-01 12:00 UTC, ranked; H100: 29.14 µs ± 0.06"


def test_a_submission_without_an_outcome_shows_its_state() -> None:
    assert _row(SubmissionState.RUNNING)[-1] == "running"


@pytest.mark.parametrize("state", [SubmissionState.RUNNING, SubmissionState.FAILED])
def test_what_is_not_all_is_shown_with_the_state(state: SubmissionState) -> None:
    assert _row(state, PASSED)[-1] == f"H100: 29.14 µs ± 0.06, {state}"


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (ConfirmationState.CONFIRMED, "H100: 29.14 µs ± 0.06, confirmed"),
        (ConfirmationState.TIED, "H100: 29.14 µs ± 0.06, tied in its comparison"),
        (ConfirmationState.DROPPED, "H100: 29.14 µs ± 0.06"),
        (None, "H100: 29.14 µs ± 0.06"),
    ],
)
def test_a_ranked_run_says_how_it_was_confirmed(
    state: ConfirmationState | None, words: str
) -> None:
    assert _row(SubmissionState.FINISHED, replace(PASSED, confirmation=state))[-1] == words


@pytest.mark.parametrize("kind", ExclusionKind)
def test_a_run_off_its_board_says_why_its_time_does_not_count(kind: ExclusionKind) -> None:
    off = replace(PASSED, confirmation=ConfirmationState.CONFIRMED, exclusion=kind)
    assert _row(SubmissionState.FINISHED, off)[-1] == f"H100: 29.14 µs ± 0.06, {kind}"


def test_a_pending_run_and_a_lost_place_are_shown_in_the_history() -> None:
    held = replace(PASSED, score=None, confirmation=ConfirmationState.PENDING)
    assert _row(SubmissionState.FINISHED, held)[-1] == "H100: passed, confirmation pending"
    ended = replace(held, confirmation=ConfirmationState.DROPPED)
    assert _row(SubmissionState.FINISHED, ended)[-1] == "H100: passed, not ranked"
    lost = replace(PASSED, lost_to=SubmissionId(9))
    assert _row(SubmissionState.FINISHED, lost)[-1].endswith("± 0.06, lost its place to #9")


def test_the_outcome_of_a_run_too_noisy_to_be_ranked_is_not_only_passed() -> None:
    noisy = replace(PASSED, score=None, noisy=True)
    assert _row(SubmissionState.FINISHED, noisy)[-1] == "H100: passed, but too noisy to be ranked"


def test_the_outcome_of_a_ranked_run_without_a_time_is_not_only_passed() -> None:
    untimed = replace(PASSED, score=None)
    assert _row(SubmissionState.FINISHED, untimed)[-1] == "H100: passed, not ranked"


def test_nothing_submitted_is_said() -> None:
    blocks = history_report("ada", []).blocks
    assert isinstance(blocks[0], Text)
    assert blocks[0].text == "no submissions yet"


def test_a_rank_after_a_run_names_the_run_that_holds_it() -> None:
    first, second = rank([make_score(1, 10_000.0, 10.0), make_score(2, 20_000.0, 40.0)])
    board = BoardStandings(make_board(), 1, "CPU", (first, second), ())
    number = second.score.submission
    assert own_rank_line(board, second, number) == "CPU: 2nd of 2, 20.00 µs ± 0.04"
    assert own_rank_line(board, second, SubmissionId(99)) == (
        f"CPU: 2nd of 2, 20.00 µs ± 0.04, still by #{number}"
    )


def test_a_rank_that_two_hold_is_shared() -> None:
    entries = tuple(
        replace(each, rank=1) for each in rank([make_score(1, 10.0), make_score(2, 10.0)])
    )
    board = BoardStandings(make_board(), 1, "CPU", entries, ())
    assert own_rank_line(board, entries[0], entries[0].score.submission).startswith(
        "CPU: 1st (shared) of 2, "
    )
