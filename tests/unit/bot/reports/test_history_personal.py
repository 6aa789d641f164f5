from dataclasses import replace

from bot.domain.ids import SubmissionId
from bot.domain.leaderboard import OwnStanding, PersonalBoard
from bot.domain.records import HistoryEntry, JobResult
from bot.domain.scoring import ScoreValue
from bot.domain.submission import ExclusionKind, Submission, SubmissionState
from bot.reports.blocks import Chart, Report, Table, Text, Tone
from bot.reports.history import personal_report
from runners.contract.task import Mode
from runners.contract.verdict import Verdict
from tests.doubles.factories import NOON, make_board, make_score, rank


def _lines(report: Report) -> list[tuple[str, Tone]]:
    return [(each.text, each.tone) for each in report.blocks if isinstance(each, Text)]


def test_the_best_time_comes_first_then_the_place_the_gap_and_the_change() -> None:
    own = make_score(1, 8000), make_score(1, 4000, 40)
    entries = rank([*own, make_score(2, 3900)])
    standing = OwnStanding("CPU", entries[1], len(entries), own, ahead=entries[0])
    report = personal_report(PersonalBoard(make_board(), (standing,), ()))
    assert _lines(report) == [
        ("CPU: 4.000 µs ± 0.040", Tone.STRONG),
        ("🥈 2nd of 2, 2.6 % behind 1st", Tone.PLAIN),
        ("2.0x as fast as your first", Tone.PLAIN),
        ("2 ranked runs", Tone.QUIET),
    ]
    (chart,) = (each for each in report.blocks if isinstance(each, Chart))
    assert [point.value for point in chart.series[0].points] == [8.0, 4.0]


def test_who_was_never_faster_than_at_first_is_told_so() -> None:
    own = make_score(1, 4000), make_score(1, 8000)
    (entry,) = rank(own)
    standing = OwnStanding("CPU", entry, 1, own)
    report = personal_report(PersonalBoard(make_board(), (standing,), ()))
    assert ("your first is still your best", Tone.PLAIN) in _lines(report)


def test_what_is_gained_on_the_reference_is_shown_where_it_is_known() -> None:
    own = (make_score(1, 4000),)
    (entry,) = rank(own)
    known = OwnStanding("CPU", entry, 1, own, ScoreValue(12_800, 10))
    unknown = OwnStanding("L4", entry, 1, own)
    report = personal_report(PersonalBoard(make_board(), (known, unknown), ()))
    assert [text for text, tone in _lines(report) if tone is Tone.QUIET] == [
        "3.2x vs reference; 1 ranked run",
        "1 ranked run",
    ]


def _entry(mode: Mode, verdict: Verdict, value: ScoreValue | None) -> HistoryEntry:
    board = make_board()
    made = Submission(
        SubmissionId(7), board.creator, board.id, board.task_version, "kernel.py", "hash",
        mode, ("H100",), SubmissionState.FINISHED, NOON,
    )  # fmt: skip
    result = JobResult(SubmissionId(7), "H100", verdict, value)
    return HistoryEntry(made, "vectoradd", 1, (result,))


def test_each_of_the_newest_takes_one_line() -> None:
    ranked = _entry(Mode.RANKED, Verdict.PASSED, ScoreValue(29_140.0, 60.0))
    withdrawn = replace(ranked.results[0], exclusion=ExclusionKind.WITHDRAWN)
    past = (
        ranked,
        replace(ranked, results=(withdrawn,)),
        _entry(Mode.TEST, Verdict.WRONG_ANSWER, None),
    )
    report = personal_report(PersonalBoard(make_board(), (), past))
    (table,) = (each for each in report.blocks if isinstance(each, Table))
    assert [row[1] for row in table.rows] == [
        "H100 29.1 µs",
        "ranked: 29.14 µs ± 0.06, withdrawn",
        "test: wrong answer",
    ]


def test_who_is_not_ranked_is_told_so() -> None:
    report = personal_report(PersonalBoard(make_board(), (), ()))
    assert report.blocks == (Text("you have no ranked submission yet", Tone.QUIET),)
