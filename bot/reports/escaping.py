"""Text of strangers made safe for one line, and for a spreadsheet."""

import gzip
import re
from collections.abc import Iterator

from rich.cells import cell_len

from bot.reports.blocks import Attachment, Table

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\n]*?(?:\x07|\x1b\\|(?=\n)|$)|[ -/]*[0-~])"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def clean(text: str) -> str:
    """The text without terminal escapes, controls and direction marks; tabs and lines stay."""
    unified = text.replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROLS.sub("", _ESCAPES.sub("", unified))


def one_line(text: str) -> str:
    """The cleaned text on one line."""
    return " ".join(clean(text).split())


def table_lines(table: Table) -> Iterator[str]:
    """The table in columns of equal width, headings first."""
    rows = [tuple(column.name for column in table.columns)]
    rows += [tuple(one_line(cell) for cell in row) for row in table.rows]
    widths = [max(cell_len(row[index]) for row in rows) for index in range(len(table.columns))]
    for row in rows:
        cells = (
            _padded(cell, width, numeric=column.numeric)
            for cell, width, column in zip(row, widths, table.columns, strict=True)
        )
        yield "  ".join(cells).rstrip()


def _padded(cell: str, width: int, *, numeric: bool) -> str:
    """The cell as wide as its column; some writing takes the room of two letters for each."""
    space = " " * (width - cell_len(cell))
    return space + cell if numeric else cell + space


_LARGE = 8 << 20
"""Larger files are compressed: doors refuse very large ones."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def inert(value: object) -> object:
    """The value, kept from being read as a formula: names and files come from anybody."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def as_file(name: str, text: str) -> Attachment:
    """The text under this name, compressed where it is large."""
    data = text.encode()
    if len(data) <= _LARGE:
        return Attachment(name, data)
    return Attachment(f"{name}.gz", gzip.compress(data, mtime=0))
