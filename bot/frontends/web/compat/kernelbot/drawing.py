"""Draws reports as plain lines, and as Markdown, for a terminal that shows them as they come."""

from typing import assert_never

from bot.reports.blocks import Attachment, Block, Chart, Link, Log, Report, Table, Text
from bot.reports.chart import as_table
from bot.reports.lines import clean, one_line, table_lines

LONGEST_LOG = 16_384
"""Characters of a log; the whole of it is in the other doors' reports."""


def plain(report: Report) -> str:
    """The report without its title, as lines."""
    return "\n".join(filter(None, (_drawn(block, fence="") for block in report.blocks)))


def markdown(report: Report) -> str:
    """The report as Markdown; nothing that a submission has printed can end its fence."""
    drawn = [f"## {one_line(report.title)}"]
    drawn += [_drawn(block, fence="~~~~") for block in report.blocks]
    return "\n\n".join(filter(None, drawn))


def _drawn(block: Block, fence: str) -> str:
    match block:
        case Text(text):
            return clean(text).strip()
        case Table() | Chart():
            table = as_table(block) if isinstance(block, Chart) else block
            return _fenced(table.title, "\n".join(table_lines(table)), fence)
        case Log(title, text):
            return _fenced(title, shortened(text), fence)
        case Link(text, url):
            return f"{one_line(text)}: {url}"
        case Attachment():
            return ""
        case _:
            assert_never(block)


def _fenced(title: str, text: str, fence: str) -> str:
    if not fence:
        return f"{title}:\n{text}"
    inside = text.replace("~", "\N{TILDE OPERATOR}") if fence in text else text
    return f"{title}\n{fence}\n{inside}\n{fence}"


def shortened(text: str) -> str:
    """A log without what could harm a terminal, its end only when it is long; whole lines."""
    text = clean(text).strip("\n")
    if len(text) <= LONGEST_LOG:
        return text
    end = text[-LONGEST_LOG:].partition("\n")[2] or text[-LONGEST_LOG:]
    return f"[...] {len(text) - len(end):,} characters before this are left out\n{end}"
