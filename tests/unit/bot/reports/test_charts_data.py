from datetime import UTC, datetime, timedelta

from bot.reports.blocks import Chart, Point, Series, Stroke
from bot.reports.charts import as_data, thinned

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)


def test_days_become_seconds_and_names_their_numbers() -> None:
    point = Point(NOON, 1.23456789, 0.5)
    days = Chart("a", "day", "us", (Series("x", (point,), Stroke.STEPS),))
    assert as_data(days)["series"] == [
        {"name": "x", "stroke": "steps", "points": [[int(NOON.timestamp()), 1.23457, 0.5]]}
    ]
    named = Chart("a", "GPU", "us", (Series("x", (Point("B", 2.0),)),), ("A", "B"))
    assert as_data(named)["series"][0]["points"] == [[1, 2.0]]
    assert as_data(named)["names"] == ["A", "B"]


def test_runs_of_the_same_second_stay_apart() -> None:
    times = [NOON, NOON + timedelta(milliseconds=250), NOON + timedelta(milliseconds=500)]
    series = Series("runs", tuple(Point(at, 1.0) for at in times), Stroke.DOTS)
    (told,) = as_data(Chart("a", "day", "us", (series,)))["series"]
    noon = NOON.timestamp()
    assert [point[0] for point in told["points"]] == [noon, noon + 0.25, noon + 0.5]


def test_a_name_contains_no_mark_that_reverses_the_text() -> None:
    chart = Chart("\u202ea", "x", "y", (Series("\u202eb\x1b[31m", ()),))
    data = as_data(chart)
    assert (data["title"], data["series"][0]["name"]) == ("a", "b")


def test_many_points_are_thinned_evenly_and_the_name_says_so() -> None:
    points = tuple(Point(NOON + timedelta(seconds=n), float(n)) for n in range(5_000))
    few = thinned(points, 10)
    assert (len(few), few[0], few[-1]) == (10, points[0], points[-1])
    (series,) = as_data(Chart("a", "x", "y", (Series("runs", points),)))["series"]
    assert len(series["points"]) == 2_000
    assert series["name"] == "runs (2,000 of 5,000)"
