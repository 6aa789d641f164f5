"""Tests of what use cases return of a leaderboard."""

from bot.domain.leaderboard import BoardStandings, Season
from tests.doubles.factories import NOON, make_board, make_score


def test_the_records_of_a_season_are_the_scores_that_were_fastest_when_submitted() -> None:
    scores = tuple(make_score(1, time_ns) for time_ns in (300.0, 400.0, 200.0, 250.0))
    standings = BoardStandings(make_board(), 1, "CPU", (), ())
    found = Season(standings, scores, NOON, len(scores)).records
    assert [each.value.time_ns for each in found] == [300.0, 200.0]
