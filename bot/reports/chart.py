"""A chart in words, for doors that cannot draw, and for people who cannot see one."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from bot.reports.blocks import Chart, Column, Point, Table

_MOST = 10


def as_table(chart: Chart, most: int = _MOST) -> Table:
    """At most so many points of each series: the first, the last, and some between them."""
    columns = (Column("series"), Column(chart.x), Column(chart.y, numeric=True))
    rows = tuple(
        (series.name, show_place(point.at), show_value(point))
        for series in chart.series
        for point in _thinned(series.points, most)
    )
    return Table(chart.title, columns, rows)


def in_words(chart: Chart) -> str:
    """What a picture of the chart shows, in one paragraph."""
    return f"{chart.title}, {chart.y} by {chart.x}: " + "; ".join(_summaries(chart))


def _summaries(chart: Chart) -> Iterator[str]:
    for series in chart.series:
        if not series.points:
            continue
        first, last = series.points[0], series.points[-1]
        count = len(series.points)
        if count == 1:
            yield f"{series.name} {show_value(first)} ({show_place(first.at)})"
        else:
            yield (
                f"{series.name} from {show_value(first)} ({show_place(first.at)}) "
                f"to {show_value(last)} ({show_place(last.at)}), {count} points"
            )


def show_place(at: datetime | str) -> str:
    """Where a point is: a day with its time, or a name."""
    return at if isinstance(at, str) else f"{at:%Y-%m-%d %H:%M}"


def show_value(point: Point) -> str:
    """A value with four digits, and its half-width where there is one."""
    half = f" ± {point.half_width:.2g}" if point.half_width is not None else ""
    return f"{point.value:.4g}{half}"


def _thinned(points: Sequence[Point], most: int) -> Sequence[Point]:
    if len(points) <= most:
        return points
    step = (len(points) - 1) / (most - 1)
    return [points[round(number * step)] for number in range(most)]
