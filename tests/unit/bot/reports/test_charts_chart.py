from datetime import timedelta

import pytest

from bot.reports.blocks import Chart, Point, Series
from bot.reports.charts import as_table, describe_chart
from tests.doubles.factories import NOON


def over_days(count: int) -> Chart:
    points = tuple(Point(NOON + timedelta(days=n), 100.0 - n, 0.5) for n in range(count))
    return Chart("best", "day (UTC)", "time (µs)", (Series("ada", points), Series("nobody", ())))


def test_a_few_points_are_all_in_the_table() -> None:
    table = as_table(over_days(2))
    assert [column.name for column in table.columns] == ["series", "day (UTC)", "time (µs)"]
    assert table.rows == (
        ("ada", "2026-11-01 12:00", "100 ± 0.5"),
        ("ada", "2026-11-02 12:00", "99 ± 0.5"),
    )


def test_of_many_points_the_first_and_the_last_are_among_those_shown() -> None:
    rows = as_table(over_days(100), most=5).rows
    assert len(rows) == 5
    assert (rows[0][2], rows[-1][2]) == ("100 ± 0.5", "1 ± 0.5")


def test_words_stand_for_the_picture() -> None:
    assert describe_chart(over_days(3)) == (
        "best, time (µs) by day: ada from 100 ± 0.5 (2026-11-01 12:00 UTC) "
        "to 98 ± 0.5 (2026-11-03 12:00 UTC), 3 points"
    )
    one = Chart("t", "GPU", "us", (Series("ada", (Point("L4", 1.5),)),), ("L4",))
    assert describe_chart(one) == "t, us by GPU: ada 1.5 (L4)"


def test_times_and_names_do_not_share_an_axis() -> None:
    for points, names in [
        ((Point("L4", 1.0),), ()),
        ((Point("L4", 1.0), Point(NOON, 1.0)), ("L4",)),
        ((Point("H100", 1.0),), ("L4",)),
    ]:
        with pytest.raises(ValueError, match="all at times"):
            Chart("t", "x", "y", (Series("s", points),), names)
