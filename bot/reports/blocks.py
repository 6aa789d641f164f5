"""The neutral blocks from which reports are built; each front end draws them in its own way."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Tone(StrEnum):
    """The meaning of a text, from which a front end chooses its style."""

    PLAIN = "plain"
    """No special meaning."""
    STRONG = "strong"
    """What matters most."""
    GOOD = "good"
    """A success."""
    BAD = "bad"
    """A failure."""
    QUIET = "quiet"
    """A detail that few readers need."""


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph; it may contain untrusted text, so a front end escapes it.

    A front end that can draw Markdown draws that of a text with `has_markdown`.
    """

    text: str
    tone: Tone = Tone.PLAIN
    has_markdown: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """A column's heading, and whether its cells are numbers."""

    name: str
    numeric: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of equal length under named columns.

    A narrow front end draws a table with `is_list` as a list: its cells are clear without headings.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    is_list: bool = False

    def __post_init__(self) -> None:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError("every row of a table has one cell per column")


@dataclass(frozen=True, slots=True)
class Log:
    """Output of a program, shown unchanged.

    `syntax` is its language, such as `diff`, for front ends that highlight it.
    """

    title: str
    text: str
    syntax: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """An address for further reading."""

    text: str
    url: str


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file of a report; `about` describes a picture in words."""

    name: str
    data: bytes
    about: str = ""


@dataclass(frozen=True, slots=True)
class Point:
    """A value at a time or a named place, perhaps with the half-width of its interval."""

    at: datetime | str
    value: float
    half_width: float | None = None


class Stroke(StrEnum):
    """How the points of a series are connected."""

    DOTS = "dots"
    """Separate points."""
    LINE = "line"
    """A line from each point to the next."""
    STEPS = "steps"
    """Each value holds until the next, such as the best one so far."""


@dataclass(frozen=True, slots=True)
class Series:
    """Points of one kind, from left to right; the name may be untrusted."""

    name: str
    points: tuple[Point, ...]
    stroke: Stroke = Stroke.LINE


@dataclass(frozen=True, slots=True)
class Chart:
    """Series over a common axis; `y` names the values with their unit, such as `time (µs)`.

    `names` are the places along the axis, in order, when points are not at times. A front end that
    cannot draw shows `bot.reports.charts.as_table`.
    """

    title: str
    x: str
    y: str
    series: tuple[Series, ...]
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        places = {point.at for each in self.series for point in each.points}
        if any(place not in self.names for place in places if self.names or isinstance(place, str)):
            raise ValueError("the points of a chart are all at times, or all at its names")


Block = Text | Table | Log | Link | Attachment | Chart


@dataclass(frozen=True, slots=True)
class Report:
    """What is shown: a title, then its blocks in order."""

    title: str
    blocks: tuple[Block, ...]
