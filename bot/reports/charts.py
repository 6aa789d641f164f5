"""The report of how kernels scale over the GPU types of a board."""

from collections.abc import Sequence

from bot.domain.durations import common_unit, show_time
from bot.domain.leaderboard import GpuScaling, PersonScaling
from bot.domain.score import ScoreValue
from bot.reports.blocks import Block, Chart, Column, Point, Report, Series, Table, Text, Tone

_DRAWN = 8
"""More lines than this cannot be told apart."""


def scaling_report(scaling: GpuScaling) -> Report:
    """A row for each person; the plot has the first of them where there are two GPU types."""
    title = f"{scaling.board.name} over GPU types"
    if not scaling.people:
        return Report(title, (Text("nobody is ranked yet", Tone.QUIET),))
    columns = (Column("who"), *(Column(gpu, numeric=True) for gpu in scaling.gpus))
    rows = tuple(_row(each, scaling.gpus) for each in scaling.people)
    words = "each person's best on each GPU type, and how much slower than on that person's fastest"
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
    title = f"{scaling.board.name}: best times over GPU types"
    if len(scaling.people) > len(drawn):
        title += f" (the first {len(drawn)} of {len(scaling.people)} people)"
    return Chart(title, "GPU type", f"time ({unit})", series, tuple(scaling.gpus))


def _points(person: PersonScaling, gpus: Sequence[str], scale: float) -> tuple[Point, ...]:
    return tuple(
        Point(gpu, value.time_ns / scale, value.half_width_ns / scale)
        for gpu in gpus
        if (value := person.values.get(gpu)) is not None
    )
