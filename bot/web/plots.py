"""The data of the plots that `static/charts.js` draws."""

from collections.abc import Sequence
from typing import Any

from bot.reports.blocks import Chart, Point, Series
from bot.reports.charts import UTC_SUFFIX
from bot.reports.escaping import one_line

_MOST = 2_000
"""The most points of one series: more would overlap, and each takes 30 bytes."""


def as_data(chart: Chart) -> dict[str, Any]:
    """Return a chart's title, axes and series; times are seconds since 1970, names are indices.

    The script shows times in the zone of the viewer.
    """
    return {
        "title": one_line(chart.title),
        "x": chart.x.removesuffix(UTC_SUFFIX),
        "y": chart.y,
        "names": [one_line(each) for each in chart.names],
        "series": [as_series(each, chart.names) for each in chart.series],
    }


def as_series(series: Series, names: Sequence[str] = ()) -> dict[str, Any]:
    """Return a series of at most `_MOST` points; if it had more, its name says so."""
    points = thinned(series.points)
    name = one_line(series.name)
    if len(points) < len(series.points):
        name += f" ({len(points):,} of {len(series.points):,})"
    return {
        "name": name,
        "stroke": series.stroke.value,
        "points": [as_point(each, names) for each in points],
    }


def thinned(points: Sequence[Point], most: int = _MOST) -> Sequence[Point]:
    """Return at most `most` of the points, evenly, including the first and the last."""
    if len(points) <= most:
        return points
    step = (len(points) - 1) / (most - 1)
    return [points[round(number * step)] for number in range(most)]


def as_point(point: Point, names: Sequence[str] = ()) -> list[float]:
    """Return a point's time or the index of its name, its value, and its half-width, if any."""
    at = names.index(point.at) if isinstance(point.at, str) else round(point.at.timestamp(), 3)
    shown = [at, float(f"{point.value:.6g}")]
    return shown if point.half_width is None else [*shown, float(f"{point.half_width:.3g}")]
