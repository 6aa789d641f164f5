"""Tests of rare answers; integration tests cover all others."""

from datetime import UTC, datetime

import pytest

from bot.domain.api.boards import (
    Absent,
    BoardLine,
    LeaderboardsAnswer,
    StandingBody,
    StandingsAnswer,
)
from bot.domain.api.finals import FinalsAnswer
from bot.domain.api.submissions import JobResultBody, PastSubmission, ProfileFile
from bot.domain.board import SourceVisibility, Visibility
from bot.domain.confirmation import ConfirmationState
from bot.domain.finals import Final, FinalRow
from bot.domain.ids import BoardId, FinalId, SubmissionId, TaskVersionId
from bot.domain.submission import ExclusionKind, SubmissionState
from bot.remote.client.decode import entry_of, file_of, finals_of, leaderboards_of
from runners.contract.evaluation import CPU, Timing
from runners.contract.task import Mode
from runners.contract.verdict import Verdict

NOW = datetime(2026, 7, 1, tzinfo=UTC)


@pytest.mark.parametrize("name", ["../k.py", "/etc/passwd", "", "a/b", ".profile"])
def test_a_file_is_saved_under_no_name_that_leads_elsewhere(name: str) -> None:
    with pytest.raises(ValueError, match="name"):
        file_of(ProfileFile(gpu=CPU, name=name), b"x")
    with pytest.raises(ValueError, match="not a GPU type"):
        file_of(ProfileFile(gpu=f"../{name}", name="case-1.ncu-rep"), b"x")


def test_a_file_keeps_its_bytes() -> None:
    found = file_of(ProfileFile(gpu="H100", name="case-1.ncu-rep"), b"NVR")
    assert (found.gpu, found.file.name, found.file.content()) == ("H100", "case-1.ncu-rep", b"NVR")


def test_a_verdict_of_a_later_podium_is_not_taken_for_one_of_ours() -> None:
    board = BoardLine(
        name="softmax", id=1, gpus=(CPU,), deadline=None, is_open=True, created_at=NOW,
        creator_id=1, task_version_id=1, visibility=Visibility.PUBLIC,
        source_visibility=SourceVisibility.ALWAYS,
    )  # fmt: skip
    absent = Absent(
        person="Ada", person_id=1, verdict="too_clever", stage=None, message="", submission=1,
        submitted_at=NOW,
    )  # fmt: skip
    leaderboard = StandingsAnswer(
        board="softmax", gpu=CPU, task_version=1, version_note="", deadline=None,
        speed_of_light_ns=None, timing=Timing.OUTSIDE, reference=None, reference_failure="",
        entries=(), absent=(absent,),
    )  # fmt: skip
    with pytest.raises(ValueError, match="too_clever"):
        leaderboards_of(LeaderboardsAnswer(board=board, leaderboards=(leaderboard,)))


def test_a_decoded_history_entry_has_its_confirmation_lost_place_and_exclusion() -> None:
    result = JobResultBody(
        gpu=CPU, verdict=Verdict.PASSED, time=None, confirmation=ConfirmationState.SLOWER,
        lost_to=9, exclusion=ExclusionKind.WITHDRAWN,
    )  # fmt: skip
    past = PastSubmission(
        id=7, board="softmax", board_id=1, task_version=1, task_version_id=1, file_name="k.py",
        source_hash="", mode=Mode.RANKED, gpus=(CPU,), state=SubmissionState.FINISHED,
        created_at=NOW, results=(result,),
    )  # fmt: skip
    (found,) = entry_of(past).results
    assert (found.confirmation, found.lost_to) == (ConfirmationState.SLOWER, 9)
    assert found.exclusion is ExclusionKind.WITHDRAWN


def test_a_decoded_final_has_its_progress_and_unknown_resolutions() -> None:
    row = FinalRow(1, SubmissionId(7), "ada", 20_000.0, 100.0, resolution_ns=250.0)
    entries = SubmissionId(7), SubmissionId(5), SubmissionId(6)
    final = Final(
        FinalId(1), BoardId(1), TaskVersionId(1), CPU, 10, NOW, entries, (row,), NOW, 1, 30.0
    )
    (found,) = finals_of(FinalsAnswer.of("softmax", (final,)))
    assert found.rows == (row,)
    assert (found.compared, found.left, found.left_s) == (1, 1, 30.0)


def test_a_decoded_standing_has_its_ratio_to_the_reference_only_if_that_was_timed_in_turn() -> None:
    standing = StandingBody(
        rank=1, person="Ada", person_id=1, time_ns=100.0, half_width_ns=1.0, vs_reference=2.0,
        vs_reference_low=1.6, vs_reference_high=2.5, attempts=1, submission=7, submitted_at=NOW,
    )  # fmt: skip
    assert standing.in_turn is None
    found = standing.model_copy(update={"vs_reference_in_turn": True}).in_turn
    assert found is not None
    assert (found.ratio, found.half_width) == (0.5, 0.125)
