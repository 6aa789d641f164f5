from bot.domain.ids import BoardId, PersonId, SubmissionId, TaskVersionId
from bot.domain.records import ComparedSubmission, SubmissionComparison
from bot.domain.scoring import ScoreValue
from bot.domain.submission import Submission, SubmissionState
from bot.reports.blocks import Attachment, Log, Table, Text, Tone
from bot.reports.comparison import comparison_report
from runners.contract.task import Mode
from runners.contract.verdict import Verdict
from tests.doubles.factories import NOON

_BESIDE = (("a", "|", "b"), ("李", " ", "c"), ("    ", ">", "d"))


def comparison(
    first: ComparedSubmission,
    second: ComparedSubmission,
    difference: str = "",
    beside: tuple[tuple[str, str, str], ...] = (),
    *,
    too_long: bool = False,
) -> SubmissionComparison:
    return SubmissionComparison(first, second, difference, beside, too_long)


def side(number: int, version: int = 1, *, failed: str = "", **scores: float) -> ComparedSubmission:
    submission = Submission(
        id=SubmissionId(number),
        person=PersonId(1),
        board=BoardId(1),
        task_version=TaskVersionId(version),
        file_name="kernel.py",
        source_hash="0" * 64,
        mode=Mode.RANKED,
        gpus=tuple(scores),
        state=SubmissionState.FINISHED,
        created_at=NOON,
    )
    verdicts = dict.fromkeys(scores, Verdict.PASSED)
    if failed:
        verdicts[failed] = Verdict.WRONG_ANSWER
    return ComparedSubmission(
        submission, verdicts, {gpu: ScoreValue(time, 1) for gpu, time in scores.items()}
    )


def test_each_gpu_type_has_a_row_that_says_which_is_faster() -> None:
    first, second = side(1, H100=300, L4=100, T4=500), side(2, H100=100, L4=100.2, A10=7)
    report = comparison_report(comparison(first, second, "-a\n+b\n", _BESIDE))
    table, log, file = report.blocks
    assert isinstance(table, Table)
    assert [row[0] for row in table.rows] == ["A10", "H100", "L4", "T4"]
    assert [row[3] for row in table.rows] == [
        "",
        "3.0x as fast",
        "cannot be told apart",
        "",
    ]
    assert log == Log("difference", "-a\n+b\n", "diff")
    assert isinstance(file, Attachment)
    assert file.data.decode() == "a    | b\n李     c\n     > d\n"
    back = comparison_report(comparison(second, first)).blocks[0]
    assert isinstance(back, Table)
    assert back.rows[1][3] == "3.0x as long"


def test_what_has_no_time_has_its_verdict() -> None:
    table, *_ = comparison_report(comparison(side(1, H100=300), side(2, failed="H100"))).blocks
    assert isinstance(table, Table)
    assert table.rows == (("H100", "300.0 ns ± 1.0", "wrong answer"),)
    table, words, _ = comparison_report(comparison(side(1, failed="L4"), side(2))).blocks
    assert isinstance(table, Table)
    assert table.rows == (("L4", "wrong answer", ""),)
    assert words == Text("neither submission has a ranked time", Tone.QUIET)


def test_times_of_two_task_versions_are_not_compared() -> None:
    report = comparison_report(comparison(side(1, H100=300), side(2, version=2, H100=100)))
    table, words, _ = report.blocks
    assert isinstance(table, Table)
    assert [each.name for each in table.columns] == ["GPU", "#1", "#2"]
    assert table.rows == (("H100", "300.0 ns ± 1.0", "100.0 ns ± 1.0"),)
    assert isinstance(words, Text)
    assert "different task versions" in words.text


def test_sources_that_differ_in_line_ends_alone_are_not_called_the_same() -> None:
    (_, said) = comparison_report(comparison(side(1), side(2), beside=_BESIDE)).blocks
    assert isinstance(said, Text)
    assert "their line endings" in said.text


def test_without_times_and_differences_that_is_said() -> None:
    report = comparison_report(comparison(side(1), side(2)))
    words = [block.text for block in report.blocks if isinstance(block, Text)]
    assert words == ["neither submission has a ranked time", "the sources are identical"]


def test_sources_that_are_too_long_are_not_called_the_same() -> None:
    (_, said) = comparison_report(comparison(side(1), side(2), too_long=True)).blocks
    assert isinstance(said, Text)
    assert "too long" in said.text
