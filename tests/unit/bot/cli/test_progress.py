"""Tests of live progress."""

import io

from rich.console import Console

from bot.cli.progress import ProgressLines
from bot.reports.blocks import Text


def test_a_pipe_gets_one_line_per_change() -> None:
    stream = io.StringIO()
    with ProgressLines(Console(file=stream, force_terminal=False)) as lines:
        lines.tell("#1", Text("queued"))
        lines.tell("#1", Text("queued"))
        lines.tell("#1", Text("passed\x1b[2J"))
    assert stream.getvalue() == "#1: queued\n#1: passed\n"


def test_a_terminal_gets_a_bar_of_what_is_done() -> None:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, color_system=None, width=80)
    with ProgressLines(console) as lines:
        lines.tell("#1", Text("test 2/5"), 0.4)
        lines.tell("#1", Text("test 4/5"), 0.8)
    assert f"#1  {'━' * 16}" in stream.getvalue()


def test_a_terminal_gets_a_drawing_that_goes_away() -> None:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=80)
    with ProgressLines(console, shown=1) as lines:
        lines.tell("#1", Text("[red]queued"))
        lines.tell("#2", Text("passed"))
    drawn = stream.getvalue()
    assert "passed" in drawn
    assert drawn.rstrip().endswith("\x1b[2K")
