"""Tests of what use cases return of a leaderboard."""

from bot.domain.leaderboard import BoardStandings, Season
from tests.doubles.factories import NOON, make_board, make_score


def test_the_records_of_a_season_are_the_scores_that_were_fastest_when_submitted() -> None:
    scores = tuple(make_score(1, time_ns) for time_ns in (300.0, 400.0, 200.0, 250.0))
    standings = BoardStandings(make_board(), 1, "CPU", (), ())
    found = Season(standings, scores, NOON, len(scores)).records
    assert [each.value.time_ns for each in found] == [300.0, 200.0]


def test_a_record_has_the_one_before_and_a_run_the_persons_one_before() -> None:
    scores = tuple(make_score(*each) for each in ((1, 300.0), (2, 400.0), (1, 200.0), (2, 350.0)))
    standings = BoardStandings(make_board(), 1, "CPU", (), ())
    found = Season(standings, scores, NOON, len(scores))
    assert [(each.score, each.before) for each in found.compared_records] == [
        (scores[0], None), (scores[2], scores[0]),
    ]  # fmt: skip
    assert [each.before for each in found.compared_runs] == [None, None, scores[0], scores[1]]
    assert Season(standings, (), NOON, 0).compared_records == ()
