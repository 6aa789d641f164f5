"""Draws report blocks on a terminal with rich, or as plain lines anywhere else."""

import re
import textwrap
from collections.abc import Iterator
from typing import assert_never

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text as RichText

from bot.reports.blocks import Attachment, Block, Chart, Link, Log, Report, Table, Text, Tone
from bot.reports.chart import as_table

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\n]*?(?:\x07|\x1b\\|(?=\n)|$)|[ -/]*[0-~])"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
STYLES = {Tone.PLAIN: "", Tone.GOOD: "green", Tone.BAD: "red", Tone.QUIET: "dim"}


def clean(text: str) -> str:
    """The text without terminal escapes, controls and direction marks; tabs and lines stay."""
    unified = text.replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROLS.sub("", _ESCAPES.sub("", unified))


def one_line(text: str) -> str:
    """The cleaned text on one line."""
    return " ".join(clean(text).split())


def draw(report: Report, console: Console) -> None:
    """Write the report to the console in the way that suits what it is connected to."""
    if not console.is_terminal:
        for line in plain_lines(report):
            console.out(line, highlight=False)
        return
    console.print(RichText(one_line(report.title), style="bold"))
    for block in report.blocks:
        _draw_block(block, console)


def _draw_block(block: Block, console: Console) -> None:
    match block:
        case Text(text, tone):
            console.print(Padding(RichText(clean(text), style=STYLES[tone]), (0, 0, 0, 2)))
        case Table():
            console.print(Padding(_rich_table(block), (0, 0, 0, 2)))
        case Log(title, text):
            console.print(Padding(RichText(f"{one_line(title)}:", style="dim"), (0, 0, 0, 2)))
            console.print(Padding(RichText(clean(text)), (0, 0, 0, 4)))
        case Link(text, url):
            console.print(Padding(RichText(f"{one_line(text)}: {one_line(url)}"), (0, 0, 0, 2)))
        case Attachment():
            console.print(Padding(RichText(_attachment(block)), (0, 0, 0, 2)))
        case Chart():
            console.print(Padding(_rich_table(as_table(block)), (0, 0, 0, 2)))
        case _:
            assert_never(block)


def _rich_table(table: Table) -> RichTable:
    drawn = RichTable(title=RichText(table.title, style="dim"), title_justify="left", box=None)
    for column in table.columns:
        drawn.add_column(
            RichText(column.name),
            justify="right" if column.numeric else "left",
            no_wrap=column.numeric,
        )
    for row in table.rows:
        drawn.add_row(*(RichText(one_line(cell)) for cell in row))
    return drawn


def plain_lines(report: Report) -> Iterator[str]:
    """The report without colour or width, for pipes, logs and screen readers."""
    yield one_line(report.title)
    for block in report.blocks:
        for line in _plain_block(block):
            yield f"  {line}".rstrip()


def _plain_block(block: Block) -> Iterator[str]:
    match block:
        case Text(text):
            yield from clean(text).splitlines()
        case Table():
            yield from _plain_table(block)
        case Log(title, text):
            yield f"{one_line(title)}:"
            yield from textwrap.indent(clean(text), "  ").splitlines()
        case Link(text, url):
            yield f"{one_line(text)}: {one_line(url)}"
        case Attachment():
            yield _attachment(block)
        case Chart():
            yield from _plain_table(as_table(block))
        case _:
            assert_never(block)


def _plain_table(table: Table) -> Iterator[str]:
    yield f"{table.title}:"
    rows = [tuple(column.name for column in table.columns)]
    rows += [tuple(one_line(cell) for cell in row) for row in table.rows]
    widths = [max(cell_len(row[index]) for row in rows) for index in range(len(table.columns))]
    for row in rows:
        cells = (
            _padded(cell, width, numeric=column.numeric)
            for cell, width, column in zip(row, widths, table.columns, strict=True)
        )
        yield ("  " + "  ".join(cells)).rstrip()


def _padded(cell: str, width: int, *, numeric: bool) -> str:
    """The cell as wide as its column; some writing takes two columns of a terminal per letter."""
    space = " " * (width - cell_len(cell))
    return space + cell if numeric else cell + space


def _attachment(attachment: Attachment) -> str:
    return f"file {one_line(attachment.name)}, {len(attachment.data)} bytes"
