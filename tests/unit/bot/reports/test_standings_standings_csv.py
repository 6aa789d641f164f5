import csv
import io

from bot.domain.leaderboard import BoardStandings
from bot.domain.scoring import ScoreValue, Standing
from bot.reports.standings import COLUMNS, standings_csv
from tests.doubles.factories import make_board, make_score


def test_each_entry_is_a_line_and_no_name_a_formula() -> None:
    entry = Standing(1, make_score(1, 500.0, 2.0, person_name="=1+1", pool="=box"), 3)
    board = BoardStandings(make_board(), 2, "CPU", (entry,), (), reference=ScoreValue(1000.0, 1.0))
    empty = BoardStandings(make_board(), 2, "H100", (), ())
    (row,) = csv.DictReader(io.StringIO(standings_csv([board, empty])))
    assert tuple(row) == COLUMNS
    assert (row["person"], row["time_ns"], row["vs_reference"]) == ("'=1+1", "500.0", "2.0")
    assert (row["gpu"], row["task_version"], row["attempts"]) == ("CPU", "2", "3")
    assert row["pool"] == "'=box"
    assert standings_csv([empty]).splitlines() == [",".join(COLUMNS)]
