"""Charts of a season and by GPU type, also as tables and words."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from bot.domain.leaderboard import GpuScaling, PersonScaling, Season
from bot.domain.scoring import Score, ScoreValue
from bot.domain.times import common_unit, show_time
from bot.reports.blocks import (
    Block,
    Chart,
    Column,
    Point,
    Report,
    Series,
    Stroke,
    Table,
    Text,
    Tone,
)

_DRAWN = 8
"""The most lines in a plot; more cannot be told apart."""


def scaling_report(scaling: GpuScaling) -> Report:
    """Return a row per person; with several GPU types, also a plot of the first people."""
    title = f"{scaling.board.name} by GPU type"
    if not scaling.people:
        return Report(title, (Text("no ranked submissions yet", Tone.QUIET),))
    columns = (Column("who"), *(Column(gpu, numeric=True) for gpu in scaling.gpus))
    rows = tuple(_row(each, scaling.gpus) for each in scaling.people)
    words = "each person's best time on each GPU type, relative to that person's fastest GPU type"
    blocks: list[Block] = [Text(words, Tone.QUIET), Table("times", columns, rows)]
    if len(scaling.gpus) > 1:
        blocks.append(_chart(scaling))
    return Report(title, tuple(blocks))


def _row(person: PersonScaling, gpus: Sequence[str]) -> tuple[str, ...]:
    fastest = min(value.time_ns for value in person.values.values())
    return (person.person_name, *(_cell(person.values.get(gpu), fastest) for gpu in gpus))


def _cell(value: ScoreValue | None, fastest_ns: float) -> str:
    if value is None:
        return ""
    return f"{show_time(value.time_ns)} {value.time_ns / fastest_ns:.1f}x"


def _chart(scaling: GpuScaling) -> Chart:
    drawn = scaling.people[:_DRAWN]
    scale, unit = common_unit([value.time_ns for each in drawn for value in each.values.values()])
    series = tuple(
        Series(f"{number}. {each.person_name}", _points(each, scaling.gpus, scale))
        for number, each in enumerate(drawn, start=1)
    )
    title = f"{scaling.board.name}: best times by GPU type"
    if len(scaling.people) > len(drawn):
        title += f" (the first {len(drawn)} of {len(scaling.people)} people)"
    return Chart(title, "GPU type", f"time ({unit})", series, tuple(scaling.gpus))


def _points(person: PersonScaling, gpus: Sequence[str], scale: float) -> tuple[Point, ...]:
    return tuple(
        Point(gpu, value.time_ns / scale, value.half_width_ns / scale)
        for gpu in gpus
        if (value := person.values.get(gpu)) is not None
    )


_MOST = 10


def as_table(chart: Chart, most: int = _MOST) -> Table:
    """Return at most `most` points of each series, with the first and the last."""
    columns = (Column("series"), Column(chart.x), Column(chart.y, numeric=True))
    rows = tuple(
        (series.name, show_place(point.at), show_value(point))
        for series in chart.series
        for point in _thinned(series.points, most)
    )
    return Table(chart.title, columns, rows)


def in_words(chart: Chart) -> str:
    """Return a description of the chart's picture in one paragraph."""
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
    """Return a point's position: a date and time, or a name."""
    return at if isinstance(at, str) else f"{at:%Y-%m-%d %H:%M}"


def show_value(point: Point) -> str:
    """Return a value with four digits, and its half-width if there is one."""
    half = f" ± {point.half_width:.2g}" if point.half_width is not None else ""
    return f"{point.value:.4g}{half}"


def _thinned(points: Sequence[Point], most: int) -> Sequence[Point]:
    if len(points) <= most:
        return points
    step = (len(points) - 1) / (most - 1)
    return [points[round(number * step)] for number in range(most)]


DAY = "day (UTC)"


def season_chart(season: Season) -> Chart | None:
    """Return the season's chart; None while there are no ranks."""
    if not season.scores:
        return None
    scale, unit = common_unit([each.value.time_ns for each in season.scores])
    best = [Point(each.submitted_at, each.value.time_ns / scale) for each in season.records]
    best.append(Point(season.until, best[-1].value))
    leaderboard = season.leaderboard
    title = f"{leaderboard.board.name} on {leaderboard.gpu}: best time so far"
    series = (
        Series("best so far", tuple(best), Stroke.STEPS),
        Series(_runs(season), points(season.scores, scale), Stroke.DOTS),
    )
    return Chart(title, DAY, f"time ({unit})", series)


def _runs(season: Season) -> str:
    shown, total = len(season.scores), season.total
    return "each ranked run" if shown == total else f"ranked runs ({shown:,} of {total:,})"


def points(scores: Sequence[Score], scale: float) -> tuple[Point, ...]:
    """Return scores as points at their submission times, in units of `scale` nanoseconds."""
    return tuple(
        Point(each.submitted_at, each.value.time_ns / scale, each.value.half_width_ns / scale)
        for each in scores
    )
