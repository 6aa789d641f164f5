"""Tests of drawing blocks."""

import io

import pytest
from rich.console import Console

from bot.cli.draw import draw, plain_lines
from bot.reports.blocks import (
    Attachment,
    Chart,
    Column,
    Link,
    Log,
    Point,
    Report,
    Series,
    Table,
    Text,
    Tone,
)

EVERYTHING = Report(
    "vectoradd",
    (
        Text("[bold]not markup[/bold] \x1b[2Jgone", Tone.BAD),
        Table("cases", (Column("who"), Column("time", numeric=True)), (("a\nda", "2 µs"),)),
        Log("printed", "line 1\r\nline 2\x07"),
        Link("more", "https://example.org"),
        Attachment("kernel.py", b"12345"),
        Chart("plot", "GPU", "us", (Series("bob\x07", (Point("L4", 7.5),)),), ("L4",)),
    ),
)


def _drawn(*, terminal: bool) -> str:
    stream = io.StringIO()
    draw(EVERYTHING, Console(file=stream, force_terminal=terminal, color_system=None, width=100))
    return stream.getvalue()


@pytest.mark.parametrize("terminal", [True, False])
def test_every_block_is_drawn_and_nothing_in_it_is_obeyed(terminal: bool) -> None:  # noqa: FBT001
    drawn = _drawn(terminal=terminal)
    for words in (
        "vectoradd",
        "[bold]not markup[/bold] gone",
        "a da",
        "line 2",
        "5 bytes",
        "bob",
        "7.5",
    ):
        assert words in drawn
    assert "https://example.org" in drawn
    assert "\x1b" not in drawn
    assert "\x07" not in drawn


def test_plain_tables_align_numbers_to_the_right() -> None:
    table = Table("t", (Column("who"), Column("n", numeric=True)), (("ada", "1"), ("b", "100")))
    assert list(plain_lines(Report("r", (table,)))) == [
        "r",
        "  t:",
        "    who    n",
        "    ada    1",
        "    b    100",
    ]


def test_plain_tables_know_that_some_letters_are_wide() -> None:
    table = Table("t", (Column("who"), Column("n", numeric=True)), (("日本", "1"), ("adas", "2")))
    assert list(plain_lines(Report("r", (table,))))[-2:] == ["    日本  1", "    adas  2"]
