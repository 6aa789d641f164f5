"""A competition as a report, as CSV, and as the beginning of its export."""

import csv
import io
from dataclasses import replace
from datetime import timedelta
from typing import Any

from bot.domain.api.export import ExportCompetition, ExportRows
from bot.domain.board import SeasonRules
from bot.domain.competition import Competition, CompetitionStandings, PointsRule, rank_overall
from bot.domain.ids import CompetitionId, PersonId
from bot.reports import competition as module
from bot.reports.blocks import Table, Text, Tone
from bot.reports.competition import (
    competition_pieces,
    competition_report,
    competitions_report,
    overall_csv,
)
from tests.doubles.factories import NOON, make_board, make_score, rank

DAY = timedelta(days=1)
SORT = make_board(name="sort", gpus=("CPU", "L4"), deadline=NOON + DAY)
LATER = make_board(name="later", gpus=(), rules=SeasonRules(NOON + DAY))


def make_competition(**changes: object) -> Competition:
    values: dict[str, Any] = {
        "id": CompetitionId(1),
        "name": "Cup",
        "creator": PersonId(1),
        "description": "About it.\n",
        "points": PointsRule((25.0, 18.5)),
        "opens_at": NOON,
        "boards": (SORT,),
    }
    return Competition(**(values | changes))


def standings(competition: Competition) -> CompetitionStandings:
    leaderboards = tuple((SORT, gpu) for gpu in SORT.gpus)
    ranked = [
        rank([make_score(1, 100, person_name="=ada"), make_score(2, 200)]),
        rank([make_score(1, 100, person_name="=ada")]),
    ]
    return CompetitionStandings(competition, leaderboards, rank_overall(ranked, competition.points))


def texts(found: CompetitionStandings, days: int = 0) -> list[str]:
    blocks = competition_report(found, NOON + days * DAY).blocks
    return [each.text for each in blocks if isinstance(each, Text)]


def tables(found: CompetitionStandings) -> list[Table]:
    return [each for each in competition_report(found, NOON).blocks if isinstance(each, Table)]


def test_a_report_has_the_dates_the_boards_and_the_ranking() -> None:
    found = standings(make_competition(boards=(SORT, LATER)))
    boards, overall = tables(found)
    assert boards.rows == (
        ("sort", "CPU, L4", "", "2026-11-02 12:00 UTC"),
        ("later", "", "2026-11-02 12:00 UTC", ""),
    )
    assert [each.name for each in overall.columns] == [
        "rank", "who", "points", "sort on CPU", "sort on L4",
    ]  # fmt: skip
    assert overall.rows == (
        ("1", "=ada", "50.00", "25.00", "25.00"),
        ("2", "person 2", "18.50", "18.50", "-"),
    )
    assert texts(found) == [
        "open",
        "About it.",
        "points of the first places on each board and GPU type: 25, 18.5",
    ]


def test_a_report_says_whether_the_competition_is_open() -> None:
    found = standings(make_competition(points=PointsRule()))
    assert texts(found)[0] == "open until 2026-11-02 12:00 UTC"
    assert texts(found)[2].startswith("points: 100 x best / own time")
    assert texts(found, days=2)[0] == "closed 2026-11-02 12:00 UTC"


def test_before_it_opens_a_report_has_its_date_alone() -> None:
    hidden = make_competition(boards=(), description="", opens_at=NOON + DAY)
    report = competition_report(CompetitionStandings(hidden, (), ()), NOON)
    assert report.title == "Cup"
    assert [each for each in report.blocks if not isinstance(each, Text)] == []
    assert texts(CompetitionStandings(hidden, (), ())) == ["opens at 2026-11-02 12:00 UTC"]


def test_shared_ranks_are_marked_and_a_long_ranking_is_cut() -> None:
    ranked = [rank([make_score(number, 100) for number in (1, 2)])]
    rule = PointsRule(tuple(float(number) for number in range(30)))
    found = replace(
        standings(make_competition(points=rule)),
        leaderboards=((SORT, "CPU"),),
        entries=rank_overall(ranked, rule),
    )
    assert [row[0] for row in tables(found)[1].rows] == ["1=", "1="]
    assert "18, 19 and 10 more" in texts(found)[2]
    (table, more) = module.overall_blocks(found, most=1)
    assert isinstance(table, Table)
    assert len(table.rows) == 1
    assert more == Text("and 1 more", Tone.QUIET)
    nobody = replace(found, entries=())
    assert "no ranked submissions yet" in texts(nobody)


def test_the_list_has_each_competition_with_its_dates() -> None:
    upcoming = make_competition(name="Next", boards=(), opens_at=NOON + DAY)
    (table,) = competitions_report([make_competition(), upcoming], NOON).blocks
    assert isinstance(table, Table)
    assert table.rows == (
        ("Cup", "open", "2026-11-02 12:00 UTC"),
        ("Next", "2026-11-02 12:00 UTC", ""),
    )
    (text,) = competitions_report([], NOON).blocks
    assert text == Text("there is no competition", Tone.QUIET)


def test_the_csv_has_a_column_for_each_leaderboard_and_no_name_is_a_formula() -> None:
    first, second = csv.DictReader(io.StringIO(overall_csv(standings(make_competition()))))
    assert [*first] == ["rank", "person", "total", "sort on CPU", "sort on L4"]
    assert [*first.values()] == ["1", "'=ada", "50.0", "25.0", "25.0"]
    assert (second["rank"], second["sort on L4"]) == ("2", "")


def test_an_export_begins_with_the_ranking() -> None:
    head, overall, points = competition_pieces(standings(make_competition(boards=(SORT, LATER))))
    assert head == ExportCompetition(competition="Cup", boards=("sort", "later"))
    assert isinstance(overall, ExportRows)
    assert isinstance(points, ExportRows)
    assert overall.rows[0] == {"rank": 1, "person": "=ada", "person_id": 1, "total": 50.0}
    assert [(each["person_id"], each["gpu"], each["points"]) for each in points.rows] == [
        (1, "CPU", 25.0),
        (1, "L4", 25.0),
        (2, "CPU", 18.5),
    ]
    for rows, table in ((overall, module.OVERALL), (points, module.POINTS)):
        assert [*rows.rows[0]] == [each.name for each in table.fields]
