"""Charts of a season and by GPU type, also as tables, words, and data that a script draws."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from bot.domain.leaderboard import GpuScaling, PersonScaling, Season, SeasonRun
from bot.domain.scoring import Score, ScoreValue
from bot.domain.times import common_unit, show_time
from bot.reports import blocks
from bot.reports.escaping import one_line

_MOST_SERIES = 8
"""The most lines in a plot; more cannot be told apart."""


def scaling_report(scaling: GpuScaling) -> blocks.Report:
    """Return a row per person; with several GPU types, also a plot of the first people."""
    title = f"{scaling.board.name} by GPU type"
    if not scaling.people:
        return blocks.Report(title, (blocks.Text("no ranked submissions yet", blocks.Tone.QUIET),))
    columns = (blocks.Column("who"), *(blocks.Column(gpu, numeric=True) for gpu in scaling.gpus))
    rows = tuple(_row(each, scaling.gpus) for each in scaling.people)
    words = "each person's best time on each GPU type, relative to that person's fastest GPU type"
    parts: list[blocks.Block] = [
        blocks.Text(words, blocks.Tone.QUIET),
        blocks.Table("times", columns, rows),
    ]
    if len(scaling.gpus) > 1:
        parts.append(_chart(scaling))
    return blocks.Report(title, tuple(parts))


def _row(person: PersonScaling, gpus: Sequence[str]) -> tuple[str, ...]:
    fastest = min(value.time_ns for value in person.values.values())
    return (person.person_name, *(_cell(person.values.get(gpu), fastest) for gpu in gpus))


def _cell(value: ScoreValue | None, fastest_ns: float) -> str:
    if value is None:
        return ""
    ratio = f" {value.time_ns / fastest_ns:.1f}x" if value.time_ns > fastest_ns else ""
    return f"{show_time(value.time_ns)}{ratio}"


def _chart(scaling: GpuScaling) -> blocks.Chart:
    drawn = scaling.people[:_MOST_SERIES]
    scale, unit = common_unit([value.time_ns for each in drawn for value in each.values.values()])
    series = tuple(
        blocks.Series(f"{number}. {each.person_name}", _points(each, scaling.gpus, scale))
        for number, each in enumerate(drawn, start=1)
    )
    title = f"{scaling.board.name}: best times by GPU type"
    if len(scaling.people) > len(drawn):
        title += f" (the first {len(drawn)} of {len(scaling.people)} people)"
    return blocks.Chart(title, "GPU type", f"time ({unit})", series, tuple(scaling.gpus))


def _points(person: PersonScaling, gpus: Sequence[str], scale: float) -> tuple[blocks.Point, ...]:
    return tuple(
        blocks.Point(gpu, value.time_ns / scale, value.uncertainty_ns / scale)
        for gpu in gpus
        if (value := person.values.get(gpu)) is not None
    )


_MOST_POINTS = 10


def as_table(chart: blocks.Chart, most: int = _MOST_POINTS) -> blocks.Table:
    """Return at most `most` points of each series, the first and the last among them."""
    columns = (
        blocks.Column("series"),
        blocks.Column(chart.x),
        blocks.Column(chart.y, numeric=True),
    )
    rows = tuple(
        (series.name, show_position(point.at), show_value(point))
        for series in chart.series
        for point in _thinned(series.points, most)
    )
    return blocks.Table(chart.title, columns, rows)


def describe_chart(chart: blocks.Chart) -> str:
    """Return a description of the chart's picture in one paragraph."""
    what = f"{chart.title}, {chart.y} by {chart.x.removesuffix(UTC_SUFFIX)}: "
    return what + "; ".join(_summaries(chart))


def _summaries(chart: blocks.Chart) -> Iterator[str]:
    for series in chart.series:
        if not series.points:
            continue
        first, last = series.points[0], series.points[-1]
        count = len(series.points)
        if count == 1:
            yield f"{series.name} {show_value(first)} ({_position(first.at)})"
        else:
            yield (
                f"{series.name} from {show_value(first)} ({_position(first.at)}) "
                f"to {show_value(last)} ({_position(last.at)}), {count} points"
            )


def show_position(at: datetime | str) -> str:
    """Return a point's position: a date and time, or a name."""
    return at if isinstance(at, str) else f"{at:%Y-%m-%d %H:%M}"


def _position(at: datetime | str) -> str:
    return at if isinstance(at, str) else f"{show_position(at)} UTC"


def show_value(point: blocks.Point) -> str:
    """Return a value with four digits, and its half-width if there is one."""
    half = f" ± {float(f'{point.half_width:.2g}'):g}" if point.half_width is not None else ""
    return f"{point.value:.4g}{half}"


def _thinned(points: Sequence[blocks.Point], most: int) -> Sequence[blocks.Point]:
    if len(points) <= most:
        return points
    step = (len(points) - 1) / (most - 1)
    return [points[round(number * step)] for number in range(most)]


UTC_SUFFIX = " (UTC)"
DAY = f"day{UTC_SUFFIX}"


def season_chart(season: Season) -> blocks.Chart | None:
    """Return the season's chart; None while there are no scores."""
    if not season.scores:
        return None
    scale, unit = common_unit([each.value.time_ns for each in season.scores])
    best = [blocks.Point(each.submitted_at, each.value.time_ns / scale) for each in season.records]
    best.append(blocks.Point(season.until, best[-1].value))
    leaderboard = season.leaderboard
    title = f"{leaderboard.board.name} on {leaderboard.gpu}: best time so far"
    series = (
        blocks.Series("best so far", tuple(best), blocks.Stroke.STEPS),
        blocks.Series(_runs(season), points(season.scores, scale), blocks.Stroke.DOTS),
    )
    return blocks.Chart(title, DAY, f"time ({unit})", series)


def _runs(season: Season) -> str:
    shown, total = len(season.scores), season.total
    return (
        "each ranked run" if season.is_whole else f"sample of ranked runs ({shown:,} of {total:,})"
    )


def points(scores: Sequence[Score], scale: float) -> tuple[blocks.Point, ...]:
    """Return scores as points at their submission times, in units of `scale` nanoseconds."""
    return tuple(
        blocks.Point(
            each.submitted_at, each.value.time_ns / scale, each.value.uncertainty_ns / scale
        )
        for each in scores
    )


_MOST_DRAWN = 2_000
"""The most points of one series: more would overlap, and each takes 30 bytes."""


def as_data(chart: blocks.Chart) -> dict[str, Any]:
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


def as_series(series: blocks.Series, names: Sequence[str] = ()) -> dict[str, Any]:
    """Return a series of at most `_MOST_DRAWN` points; if it had more, its name says so."""
    points = thinned(series.points)
    name = one_line(series.name)
    if len(points) < len(series.points):
        name += f" ({len(points):,} of {len(series.points):,})"
    return {
        "name": name,
        "stroke": series.stroke.value,
        "points": [as_point(each, names) for each in points],
    }


def thinned(points: Sequence[blocks.Point], most: int = _MOST_DRAWN) -> Sequence[blocks.Point]:
    """Return at most `most` of the points, evenly, including the first and the last."""
    if len(points) <= most:
        return points
    step = (len(points) - 1) / (most - 1)
    return [points[round(number * step)] for number in range(most)]


def as_point(point: blocks.Point, names: Sequence[str] = ()) -> list[float]:
    """Return a point's time or the index of its name, its value, and its half-width, if any."""
    at = names.index(point.at) if isinstance(point.at, str) else round(point.at.timestamp(), 3)
    shown = [at, float(f"{point.value:.6g}")]
    return shown if point.half_width is None else [*shown, float(f"{point.half_width:.3g}")]


def season_data(found: Season, *, shows_sources: bool) -> dict[str, Any]:
    """Return the data of the plot: the best time so far, and each run, with its links."""
    chart = season_chart(found)
    if chart is None:
        return {"series": []}
    best, runs = chart.series
    people = {each.person: each.person_name for each in found.scores}
    places: dict[int, int] = {person: place for place, person in enumerate(people)}
    return {
        **as_data(chart),
        "series": [as_series(best)],
        "each": runs.name,
        "unit": chart.y.partition("(")[2].rstrip(")"),
        "people": [(person, one_line(name)) for person, name in people.items()],
        "runs": [
            (*as_point(point), *_origin(row, places))
            for point, row in zip(runs.points, found.compared_runs, strict=True)
        ],
        "shown": shows_sources,
    }


def _origin(run: SeasonRun, places: Mapping[int, int]) -> tuple[int, int, int]:
    before = 0 if run.before is None else run.before.submission
    return run.score.submission, places[run.score.person], before
