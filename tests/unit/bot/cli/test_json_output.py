"""Tests of the JSON that commands print."""

import json
from dataclasses import replace

import pytest

from bot.cli.context import dumps
from bot.cli.json_output import case_json, evaluation_json, standings_json, task_report_json
from bot.domain.ids import PersonId, SubmissionId
from bot.domain.leaderboard import BoardStandings
from bot.domain.records import FailedRun
from bot.domain.scoring import ScoreValue
from bot.domain.tasks.lint import Finding, GraderComparison, Level, TaskReport
from runners.contract.evaluation import CaseKind, CaseStatus
from runners.contract.task import Mode
from runners.contract.verdict import Verdict
from tests.doubles.factories import (
    NOON,
    make_board,
    make_case,
    make_evaluation,
    make_score,
    make_task,
    rank,
)

EVALUATION_KEYS = [
    "verdict", "mode", "task", "score_ns", "too_noisy", "cases", "compiled", "environment",
    "isolation", "wall_s",
]  # fmt: skip
CASE_KEYS = [
    "spec", "kind", "status", "message", "time_ns", "half_width_ns", "bound_ns",
    "resolution_ns", "claimed_ns", "rounds", "samples", "left_out", "vs_reference",
    "vs_reference_low", "vs_reference_high",
]  # fmt: skip


def test_an_evaluation_has_the_promised_keys_and_its_score() -> None:
    shape = json.loads(dumps(evaluation_json(make_task(), make_evaluation())))
    assert list(shape) == EVALUATION_KEYS
    assert [list(case) for case in shape["cases"]] == [CASE_KEYS] * 3
    assert shape["verdict"] == "passed"
    assert shape["score_ns"] == 1000.0


def test_only_a_passed_ranked_evaluation_has_a_score() -> None:
    for evaluation in (
        make_evaluation(mode=Mode.BENCHMARK),
        make_evaluation(verdict=Verdict.CRASHED),
    ):
        assert evaluation_json(make_task(), evaluation)["score_ns"] is None


def test_a_timed_case_has_its_numbers_and_samples() -> None:
    shape = case_json(make_case(CaseKind.BENCHMARK))
    assert (shape["time_ns"], shape["half_width_ns"], shape["rounds"]) == (1000.0, 1.0, 1)
    assert shape["samples"] == [[1000.0]]


def test_an_untimed_case_has_nulls_and_no_samples() -> None:
    shape = case_json(make_case(status=CaseStatus.FAILED, message="1 differs"))
    assert (shape["status"], shape["message"]) == ("failed", "1 differs")
    assert (shape["time_ns"], shape["bound_ns"], shape["rounds"]) == (None, None, None)
    assert shape["samples"] == []


def test_standings_have_ranks_and_absences() -> None:
    refusal = FailedRun(
        SubmissionId(9), PersonId(8), "mallory", "CPU", "crashed", "test", "exit 1", NOON
    )
    board = BoardStandings(make_board(), 2, "CPU", rank([make_score(1, 5.0)]), (refusal,))
    shape = json.loads(dumps(standings_json(board)))
    assert shape["board"] == "vectoradd"
    assert shape["task_version"] == 2
    assert shape["entries"][0]["rank"] == 1
    assert shape["entries"][0]["time_ns"] == 5.0
    assert shape["absent"][0]["verdict"] == "crashed"


def test_standings_have_the_reference_and_what_is_gained_on_it() -> None:
    entries = rank([make_score(1, 5.0)])
    board = BoardStandings(make_board(), 1, "CPU", entries, (), reference=ScoreValue(16.0, 0.5))
    shape = json.loads(dumps(standings_json(board)))
    assert shape["reference"] == {
        "time_ns": 16.0, "half_width_ns": 0.5, "resolution_ns": 0.0, "claimed_ns": None,
    }  # fmt: skip
    (entry,) = shape["entries"]
    assert entry["vs_reference"] == pytest.approx(3.2)
    assert entry["vs_reference_low"] < 3.2 < entry["vs_reference_high"]
    unknown = json.loads(dumps(standings_json(replace(board, reference=None))))
    assert (unknown["reference"], unknown["entries"][0]["vs_reference"]) == (None, None)


def test_json_is_ascii_so_that_no_terminal_obeys_it() -> None:
    assert dumps({"message": "\x1b[2J\u202e"}).isascii()
    assert "\x1b" not in dumps({"message": "\x1b"})


def test_a_checked_task_says_who_grades_it_and_what_both_graders_said() -> None:
    compared = GraderComparison(is_right=True, native="passed", popcorn="crashed", agrees=False)
    findings = (Finding(Level.ERROR, "a.py", "they disagree", compared),)
    found = task_report_json(TaskReport("add", "CPU", findings, grading="They disagree."))
    assert (found["grading"], found["ok"]) == ("They disagree.", False)
    assert found["findings"] == [
        {
            "level": "error",
            "file": "a.py",
            "message": "they disagree",
            "comparison": {
                "is_right": True, "native": "passed", "popcorn": "crashed", "agrees": False,
            },
        }
    ]  # fmt: skip
