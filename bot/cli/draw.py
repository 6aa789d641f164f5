"""Draws report blocks on a terminal with rich, or as plain lines anywhere else."""

import textwrap
from collections.abc import Iterator
from typing import assert_never

from rich.console import Console
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text as RichText

from bot.reports.blocks import Attachment, Block, Chart, Link, Log, Report, Table, Text, Tone
from bot.reports.charts import as_table
from bot.reports.escaping import clean, one_line, table_lines

STYLES = {
    Tone.PLAIN: "", Tone.STRONG: "bold", Tone.GOOD: "green", Tone.BAD: "red", Tone.QUIET: "dim"
}  # fmt: skip


def draw(report: Report, console: Console) -> None:
    """Write the report to the console, in a format for a terminal or a pipe."""
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
    """Yield the report without color or line breaks for a width: for pipes and screen readers."""
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
    for line in table_lines(table):
        yield f"  {line}"


def _attachment(attachment: Attachment) -> str:
    return f"file {one_line(attachment.name)}, {len(attachment.data)} bytes"
