"""The neutral blocks of which every report is built; each door draws them in its own way."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Tone(StrEnum):
    """What a piece of text means, from which a door chooses its look."""

    PLAIN = "plain"
    """Nothing in particular."""
    GOOD = "good"
    """It went well."""
    BAD = "bad"
    """It did not."""
    QUIET = "quiet"
    """Of use to few."""


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph; its words may come from anybody, so a door escapes them."""

    text: str
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True, slots=True)
class Column:
    """A column's heading, and whether its cells are numbers."""

    name: str
    numeric: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of equal length under named columns."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError("every row of a table has one cell per column")


@dataclass(frozen=True, slots=True)
class Log:
    """What a program printed, to be shown as it is.

    `syntax` is what it is written in, such as `diff`, for doors that show that in colours.
    """

    title: str
    text: str
    syntax: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """A place to go on reading."""

    text: str
    url: str


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file which comes with a report; `about` says in words what a picture shows."""

    name: str
    data: bytes
    about: str = ""


@dataclass(frozen=True, slots=True)
class Point:
    """A value at a time or at a named thing, perhaps with half of its interval."""

    at: datetime | str
    value: float
    half_width: float | None = None


class Stroke(StrEnum):
    """How the points of a series hang together."""

    DOTS = "dots"
    """Each stands alone."""
    LINE = "line"
    """Each leads to the next."""
    STEPS = "steps"
    """Each holds until the next, as the best one so far does."""


@dataclass(frozen=True, slots=True)
class Series:
    """Points of one kind, from left to right; the name may come from anybody."""

    name: str
    points: tuple[Point, ...]
    stroke: Stroke = Stroke.LINE


@dataclass(frozen=True, slots=True)
class Chart:
    """Series over a common axis; `y` names the values with their unit, such as `time (us)`.

    `names` are the places along the axis, in order, where points are not at times. A door that
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
    """What is shown, from the top: a title, then its blocks."""

    title: str
    blocks: tuple[Block, ...]
