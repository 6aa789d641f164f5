"""Draws charts as pictures that are readable in Discord's dark and light themes.

matplotlib takes a second to load: only `draw.py` imports this module, when there is a
chart to draw.
"""

import math
import textwrap
from collections.abc import Sequence
from datetime import UTC, datetime
from io import BytesIO
from threading import Lock
from typing import TypeAlias

import matplotlib as mpl
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from bot.reports import escaping
from bot.reports.blocks import Chart, Point, Series, Stroke

mpl.rcParams["text.parse_math"] = False  # a dollar sign in a name is only a character
_PAPER, _INK, _QUIET_INK, _QUIET = "#ffffff", "#1f2328", "#818b98", "#d0d7de"
_COLORS = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8c6d00", "#56b4e9", "#5e4fa2", "#7f7f7f",
)  # fmt: skip
"""Okabe and Ito's color-blind safe colors, with the light ones darkened."""
_MARKERS = "osD^vP*X"
_LINE_STYLES = ("-", "--", ":")
"""Line styles: a ninth series has the first one's color and the next style."""
_LOG_FACTOR = 8.0
"""Values that differ by more than this factor use a logarithmic axis."""
_FEW_DECADES = 1000.0
"""If values differ by less than this factor, ticks at 2 and 5 fit between the decades."""
_LEAST_SPREAD = 0.1
"""An axis shows at least this fraction of a value on both sides."""
_MARGIN = 0.12
"""Inches around the drawing, which would otherwise touch the picture's edge."""
_LEAST_DAYS = 1 / 4320
"""The time axis extends at least this many days (20 s) to both sides of its middle."""
_DATE_FORMATS = ["%Y", "%b", "%d", "%H:%M", "%H:%M", ":%S"]
"""The labels of years, months, days, hours, minutes and seconds along the time axis."""
_TITLE, _NAME, _LABEL = 64, 24, 16
"""The most characters of a line of the title, of a name in the legend, and of an axis label."""
_MOST_COLUMNS = 4
"""The most columns in a legend."""
_MOST_HORIZONTAL_LABELS = 5
"""More labels than this along the axis are slanted."""
_MOST_INTERVALS = 60
"""More intervals than this would hide their points."""
_drawing = Lock()
"""matplotlib is not thread-safe."""


def png(chart: Chart) -> bytes:
    """Return the chart as a picture of 1,200 by 675 pixels."""
    with _drawing:
        layout = ConstrainedLayoutEngine(w_pad=_MARGIN, h_pad=_MARGIN)
        figure = Figure(figsize=(6, 4.5), dpi=200, facecolor=_PAPER, layout=layout)
        FigureCanvasAgg(figure)  # needed to measure widths before drawing
        _draw(chart, figure)
        file = BytesIO()
        figure.savefig(file, format="png")
        return file.getvalue()


def _draw(chart: Chart, figure: Figure) -> None:
    axes = figure.add_subplot()
    drawn = [series for series in chart.series if series.points]
    lines = [_line(series, axes, number, chart.names) for number, series in enumerate(drawn)]
    points = [point for series in drawn for point in series.points]
    _scale(points, axes)
    axes.set_xlabel(drawable(chart.x), color=_INK)
    if chart.names:
        _label_positions(chart.names, axes)
    else:
        _label_days([point.at for point in points], axes)
        _extend(drawn, lines, axes)
    title = "\n".join(textwrap.wrap(drawable(chart.title, 2 * _TITLE), _TITLE)[:2])
    axes.set_title(title, color=_INK, loc="left", fontsize=12, fontweight="bold")
    axes.set_ylabel(drawable(chart.y), color=_INK)
    _style(axes)
    if len(drawn) > 1:
        _add_legend(lines, [drawable(series.name) for series in drawn], figure)


def _add_legend(lines: Sequence[Line2D], names: Sequence[str], figure: Figure) -> None:
    """Add a legend with as many columns as fit."""
    width = figure.bbox.width - 2 * _MARGIN * figure.dpi
    for columns in range(min(len(lines), _MOST_COLUMNS), 0, -1):
        legend = figure.legend(
            lines, names, loc="outside lower center", ncols=columns, labelcolor=_INK
        )
        legend.set_frame_on(False)
        if legend.get_window_extent().width <= width or columns == 1:
            return
        legend.remove()


def _label_days(days: Sequence[datetime | str], axes: Axes) -> None:
    locator = AutoDateLocator(tz=UTC, minticks=3, maxticks=8)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator, tz=UTC, formats=_DATE_FORMATS))
    numbers = [float(date2num(day)) for day in days]
    if numbers and max(numbers) - min(numbers) < 1:
        axes.set_xlabel("time (UTC)", color=_INK)
    if numbers and max(numbers) - min(numbers) < 2 * _LEAST_DAYS:
        center = (max(numbers) + min(numbers)) / 2
        axes.set_xlim(center - _LEAST_DAYS, center + _LEAST_DAYS)


def _extend(drawn: Sequence[Series], lines: Sequence[Line2D], axes: Axes) -> None:
    """Draw a best time up to the right edge, because it still holds there."""
    left, right = axes.get_xlim()
    for series, line in zip(drawn, lines, strict=True):
        if series.stroke is Stroke.STEPS:
            x, y, _ = _columns(series, ())
            line.set_data([*x, right], [*y, y[-1]])
    axes.set_xlim(left, right)


def _label_positions(names: Sequence[str], axes: Axes) -> None:
    axes.set_xticks(range(len(names)), [drawable(name, _LABEL) for name in names])
    axes.set_xlim(-0.5, len(names) - 0.5)
    if len(names) > _MOST_HORIZONTAL_LABELS:
        for label in axes.get_xticklabels():
            label.set(rotation=25, ha="right", rotation_mode="anchor")


def _line(series: Series, axes: Axes, number: int, names: Sequence[str]) -> Line2D:
    color = _QUIET_INK if series.stroke is Stroke.DOTS else _COLORS[number % len(_COLORS)]
    x, y, half_widths = _columns(series, names)
    if series.stroke is Stroke.STEPS:
        (line,) = axes.step(x, y, where="post", color=color, linewidth=2.4, zorder=3)
        return line
    many = len(x) > _MOST_INTERVALS
    if any(half_widths) and not many:
        axes.errorbar(x, y, half_widths, fmt="none", ecolor=color, capsize=2.5, alpha=0.6, zorder=2)
    (line,) = axes.plot(
        x,
        y,
        linestyle=_LINE_STYLES[number // len(_COLORS) % 3]
        if series.stroke is Stroke.LINE
        else "none",
        linewidth=1.6,
        color=color,
        marker="o" if series.stroke is Stroke.DOTS else _MARKERS[number % len(_MARKERS)],
        markersize=3.5 if many else 5,
        alpha=0.5 if many else 0.95,
        zorder=2,
    )
    return line


_Numbers: TypeAlias = list[float]


def _columns(series: Series, names: Sequence[str]) -> tuple[_Numbers, _Numbers, _Numbers]:
    """Return positions, values and half-widths of the points; a missing point is a gap."""
    points: Sequence[Point] = series.points
    if names:
        x = [float(number) for number in range(len(names))]
        by_name = {point.at: point for point in points}
        points = [by_name.get(name, Point(name, math.nan)) for name in names]
    else:
        x = [float(date2num(point.at)) for point in points]
    return x, [point.value for point in points], [point.half_width or 0.0 for point in points]


def _scale(points: Sequence[Point], axes: Axes) -> None:
    """Use a logarithmic axis for widely different values; keep noise from looking like progress."""
    number_format = FuncFormatter(lambda value, _: f"{value:,.12g}")
    axes.yaxis.set_major_formatter(number_format)
    if not points:
        return
    low = min(point.value - (point.half_width or 0.0) for point in points)
    high = max(point.value + (point.half_width or 0.0) for point in points)
    if low > 0 and high / low > _LOG_FACTOR:
        axes.set_yscale("log")
        few = high / low < _FEW_DECADES
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if few else (1.0,)))
        axes.yaxis.set_major_formatter(number_format)
        axes.yaxis.set_minor_formatter(NullFormatter())
    elif high - low < _LEAST_SPREAD * high:
        center = (low + high) / 2
        axes.set_ylim(center * (1 - _LEAST_SPREAD), center * (1 + _LEAST_SPREAD))


def _style(axes: Axes) -> None:
    axes.set_facecolor(_PAPER)
    axes.grid(visible=True, color=_QUIET, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.tick_params(colors=_INK, labelsize=9)
    for side, spine in axes.spines.items():
        spine.set_visible(side in {"left", "bottom"})
        spine.set_color(_INK)


def drawable(text: str, most: int = _NAME) -> str:
    """Return a user's text on one line, transliterated where the font cannot draw it.

    Only matplotlib's own font is certain to be installed: it has no Chinese, Japanese or Korean
    characters and no emoji. The tables below a picture have every name unchanged.
    """
    font = font_manager.get_font(font_manager.findfont("DejaVu Sans"))
    text = escaping.drawable(text, lambda one: bool(font.get_char_index(ord(one))))
    return text if len(text) <= most else f"{text[: most - 1]}…"
