"""Tests of the report of a person's submissions."""

from bot.domain.ids import SubmissionId
from bot.domain.score import ScoreValue
from bot.domain.submission import Submission, SubmissionState
from bot.reports.blocks import Table, Text
from bot.reports.history import history_report
from bot.services.history import HistoryEntry, Result
from runners.contract.task import Mode
from runners.contract.verdict import Verdict
from tests.doubles.factories import NOON, make_board


def _entry(*results: Result) -> HistoryEntry:
    board = make_board()
    submission = Submission(
        SubmissionId(7), board.creator, board.id, board.task_version, "kernel.py", "hash",
        Mode.RANKED, ("H100", "L4"), SubmissionState.RUNNING, NOON,
    )  # fmt: skip
    return HistoryEntry(submission, "vectoradd", 2, results)


def _row(*results: Result) -> tuple[str, ...]:
    table = history_report("ada", [_entry(*results)]).blocks[0]
    assert isinstance(table, Table)
    return table.rows[0]


def test_each_gpu_type_has_its_outcome() -> None:
    passed = Result("H100", Verdict.PASSED, ScoreValue(29_140.0, 60.0))
    row = _row(passed, Result("L4", Verdict.CRASHED, None))
    assert row == (
        "#7", "2026-11-01 12:00", "vectoradd", "2", "kernel.py", "ranked",
        "H100: 29.14 us ± 0.06, L4: crashed",
    )  # fmt: skip


def test_a_submission_without_an_outcome_shows_its_state() -> None:
    assert _row()[-1] == "running"


def test_nothing_submitted_is_said() -> None:
    blocks = history_report("ada", []).blocks
    assert isinstance(blocks[0], Text)
    assert blocks[0].text == "nothing yet"
