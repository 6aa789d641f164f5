"""Tests of answers that no Podium of this version gives; all others are read in integration."""

from datetime import UTC, datetime

import pytest

from bot.domain.api.boards import Absent, BoardLine, LeaderboardsAnswer, StandingsAnswer
from bot.domain.api.submissions import ProfileFile
from bot.domain.board import SourceVisibility, Visibility
from bot.remote.client.decode import file_of, leaderboards_of
from runners.contract.evaluation import CPU, Timing

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
