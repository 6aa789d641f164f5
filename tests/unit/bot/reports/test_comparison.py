from collections.abc import Mapping
from dataclasses import dataclass

from bot.domain.ids import BoardId, PersonId, SubmissionId, TaskVersionId
from bot.domain.score import ScoreValue
from bot.domain.submission import Submission, SubmissionState
from bot.reports.blocks import Attachment, Log, Table, Text
from bot.reports.comparison import comparison_report
from runners.contract.task import Mode
from tests.doubles.factories import NOON

_BESIDE = (("a", "|", "b"), ("李", " ", "c"), ("    ", ">", "d"))


@dataclass(frozen=True)
class Side:
    submission: Submission
    scores: Mapping[str, ScoreValue]


@dataclass(frozen=True)
class Comparison:
    first: Side
    second: Side
    difference: str = ""
    beside: tuple[tuple[str, str, str], ...] = ()
    too_long: bool = False


def side(number: int, **scores: float) -> Side:
    submission = Submission(
        id=SubmissionId(number),
        person=PersonId(1),
        board=BoardId(1),
        task_version=TaskVersionId(1),
        file_name="kernel.py",
        source_hash="0" * 64,
        mode=Mode.RANKED,
        gpus=tuple(scores),
        state=SubmissionState.FINISHED,
        created_at=NOON,
    )
    return Side(submission, {gpu: ScoreValue(time, 1) for gpu, time in scores.items()})


def test_each_gpu_type_has_a_row_that_says_which_is_faster() -> None:
    first, second = side(1, H100=300, L4=100, T4=500), side(2, H100=100, L4=100.2, A10=7)
    report = comparison_report(Comparison(first, second, "-a\n+b\n", _BESIDE))
    table, log, file = report.blocks
    assert isinstance(table, Table)
    assert [row[0] for row in table.rows] == ["A10", "H100", "L4", "T4"]
    assert [row[3] for row in table.rows] == ["", "3.00x faster", "as fast", ""]
    assert log == Log("difference", "-a\n+b\n", "diff")
    assert isinstance(file, Attachment)
    assert file.data.decode() == "a    | b\n李     c\n     > d\n"
    back = comparison_report(Comparison(second, first)).blocks[0]
    assert isinstance(back, Table)
    assert back.rows[1][3] == "3.00x slower"


def test_without_times_and_differences_that_is_said() -> None:
    report = comparison_report(Comparison(side(1), side(2)))
    words = [block.text for block in report.blocks if isinstance(block, Text)]
    assert words == ["neither has a ranked time", "the sources are the same"]


def test_sources_that_are_too_long_are_not_called_the_same() -> None:
    (_, said) = comparison_report(Comparison(side(1), side(2), too_long=True)).blocks
    assert isinstance(said, Text)
    assert "too long" in said.text
