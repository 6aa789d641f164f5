from bot.domain.leaderboard import OwnStanding, PersonalBoard
from bot.domain.scoring import ScoreValue
from bot.reports.blocks import Chart, Table, Text, Tone
from bot.reports.history import personal_report
from tests.doubles.factories import make_board, make_score, rank


def test_places_trend_and_gain_are_shown() -> None:
    own = make_score(1, 8000), make_score(1, 4000, 40)
    entries = rank([*own, make_score(2, 1000)])
    standing = OwnStanding("CPU", entries[1], len(entries), own)
    report = personal_report(PersonalBoard(make_board(), (standing,), ()))
    table, chart = report.blocks
    assert isinstance(table, Table)
    assert table.rows == (
        ("CPU", "2nd of 2", "4.000 µs ± 0.040", "2.0x vs your first", "", "2 attempts"),
    )
    assert isinstance(chart, Chart)
    assert [point.value for point in chart.series[0].points] == [8.0, 4.0]


def test_what_is_gained_on_the_reference_is_shown_where_it_is_known() -> None:
    own = (make_score(1, 4000),)
    (entry,) = rank(own)
    known = OwnStanding("CPU", entry, 1, own, ScoreValue(12_800, 10))
    unknown = OwnStanding("L4", entry, 1, own)
    report = personal_report(PersonalBoard(make_board(), (known, unknown), ()))
    table = report.blocks[0]
    assert isinstance(table, Table)
    assert [each.name for each in table.columns][3:] == [
        "vs your first",
        "vs reference",
        "attempts",
    ]
    assert [row[3:] for row in table.rows] == [
        ("", "3.2x vs reference", "1 attempt"),
        ("", "", "1 attempt"),
    ]


def test_who_is_not_ranked_is_told_so() -> None:
    report = personal_report(PersonalBoard(make_board(), (), ()))
    assert report.blocks == (Text("you have no ranked submission yet", Tone.QUIET),)
