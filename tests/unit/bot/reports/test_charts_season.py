from datetime import timedelta

from bot.domain.leaderboard import BoardStandings, Season
from bot.domain.scoring import Score
from bot.reports.blocks import Chart, Stroke
from bot.reports.charts import season_chart
from tests.doubles.factories import NOON, make_board, make_score, rank


def season(*scores: Score, total: int | None = None) -> Season:
    leaderboard = BoardStandings(make_board(), 1, "CPU", rank(scores), ())
    return Season(leaderboard, scores, NOON + timedelta(days=9), total or len(scores))


def test_without_scores_there_is_nothing_to_draw() -> None:
    assert season_chart(season()) is None


def test_the_best_time_falls_in_steps_and_holds_to_the_end() -> None:
    scores = make_score(1, 9000), make_score(2, 12_000), make_score(2, 6000, 30)
    chart = season_chart(season(*scores))
    assert isinstance(chart, Chart)
    best, runs = chart.series
    assert chart.title == "vectoradd on CPU: best time so far"
    assert chart.y == "time (µs)"
    assert best.stroke is Stroke.STEPS
    assert [point.value for point in best.points] == [9.0, 6.0, 6.0]
    assert best.points[-1].at == NOON + timedelta(days=9)
    assert [(point.value, point.half_width) for point in runs.points] == [
        (9.0, 0.0),
        (12.0, 0.0),
        (6.0, 0.03),
    ]


def test_a_series_with_a_part_of_the_runs_says_so() -> None:
    chart = season_chart(season(make_score(1, 9000), make_score(2, 8000), total=40_000))
    assert isinstance(chart, Chart)
    assert [each.name for each in chart.series] == [
        "best so far",
        "sample of ranked runs (2 of 40,000)",
    ]
