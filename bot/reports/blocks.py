"""The neutral blocks of which every report is built; each door draws them in its own way."""

from dataclasses import dataclass
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
    """What a program printed, to be shown as it is."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Link:
    """A place to go on reading."""

    text: str
    url: str


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file which comes with a report."""

    name: str
    data: bytes


Block = Text | Table | Log | Link | Attachment


@dataclass(frozen=True, slots=True)
class Report:
    """What is shown, from the top: a title, then its blocks."""

    title: str
    blocks: tuple[Block, ...]
