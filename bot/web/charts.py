"""Charts as data for the script that draws them."""

from collections.abc import Sequence
from typing import Any

from bot.reports.blocks import Chart, Point, Series
from bot.reports.escaping import one_line

_MOST = 2_000
"""Points of one series: more are no more than ink, and each takes 30 bytes."""


def as_data(chart: Chart) -> dict[str, Any]:
    """A chart's title, axes and series; times in seconds since 1970, names by their number."""
    return {
        "title": one_line(chart.title),
        "x": chart.x,
        "y": chart.y,
        "names": [one_line(each) for each in chart.names],
        "series": [_series(each, chart.names) for each in chart.series],
    }


def _series(series: Series, names: Sequence[str]) -> dict[str, Any]:
    points = thinned(series.points)
    name = one_line(series.name)
    if len(points) < len(series.points):
        name += f" ({len(points):,} of {len(series.points):,})"
    return {
        "name": name,
        "stroke": series.stroke.value,
        "points": [_point(each, names) for each in points],
    }


def thinned(points: Sequence[Point], most: int = _MOST) -> Sequence[Point]:
    """At most so many of the points, evenly, with the first and the last among them."""
    if len(points) <= most:
        return points
    step = (len(points) - 1) / (most - 1)
    return [points[round(number * step)] for number in range(most)]


def _point(point: Point, names: Sequence[str]) -> list[float]:
    at = names.index(point.at) if isinstance(point.at, str) else round(point.at.timestamp(), 3)
    shown = [at, float(f"{point.value:.6g}")]
    return shown if point.half_width is None else [*shown, float(f"{point.half_width:.3g}")]
