"""Makes untrusted text safe for terminals, spreadsheets and pictures."""

import gzip
import re
import unicodedata
from collections.abc import Callable, Iterator
from itertools import groupby

from anyascii import anyascii
from rich.cells import cell_len

from bot.reports.blocks import Attachment, Table

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\n]*?(?:\x07|\x1b\\|(?=\n)|$)|[ -/]*[0-~])"
)
_CONTROLS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufffe\uffff]"
)


def clean(text: str) -> str:
    """Remove escapes, control and direction marks, noncharacters; keep tabs and newlines."""
    unified = text.replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROLS.sub("", _ESCAPES.sub("", unified))


def one_line(text: str) -> str:
    """Return the cleaned text on one line."""
    return " ".join(clean(text).split())


def drawable(text: str, has_glyph: Callable[[str], bool]) -> str:
    """Return the text on one line, transliterated where a font cannot draw it.

    `has_glyph` says whether the font has a character. Characters that are written from right to
    left are transliterated too, because texts in pictures are drawn from left to right.
    """

    def can_draw(character: str) -> bool:
        return has_glyph(character) and unicodedata.bidirectional(character) not in {
            "R",
            "AL",
            "AN",
        }

    runs = groupby(one_line(text), can_draw)
    return "".join("".join(run) if is_drawn else anyascii("".join(run)) for is_drawn, run in runs)


def table_lines(table: Table) -> Iterator[str]:
    """Yield the table's lines in aligned columns, headings first."""
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
    """Pad the cell to its column; in some scripts a character is two columns wide."""
    space = " " * (width - cell_len(cell))
    return space + cell if numeric else cell + space


_LARGE = 8 << 20
"""Larger files are compressed: front ends refuse very large ones."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def escape_formula(value: object) -> object:
    """Return the value, with a quote before text that a spreadsheet would run as a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def as_file(name: str, text: str) -> Attachment:
    """Return the text under this name, compressed if it is large."""
    data = text.encode()
    if len(data) <= _LARGE:
        return Attachment(name, data)
    return Attachment(f"{name}.gz", gzip.compress(data, mtime=0))
