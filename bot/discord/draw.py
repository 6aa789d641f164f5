"""Draws reports and the state of a submission as messages within Discord's limits.

Reports have plots as pictures; a submission has a live message, a thread's name and a public line.
"""

import asyncio
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

import structlog
from rich.cells import cell_len

from bot.discord.escaping import MESSAGE_LIMIT, fenced, line, markdown, unfenced, with_times
from bot.domain.board import Board
from bot.domain.leaderboard import Placement
from bot.domain.status import SubmissionStatus
from bot.reports.blocks import Attachment, Block, Chart, Link, Log, Report, Table, Text, Tone
from bot.reports.charts import as_table, describe_chart
from bot.reports.confirmations import confirmation_lines
from bot.reports.escaping import clean, one_line, table_lines
from bot.reports.standings import placement_lines
from bot.reports.submission import job_line, warning_of

_log = structlog.get_logger(__name__)

FILES = 10
"""The most files in a message."""
FILE_BYTES = 10 << 20
"""The most bytes in a file of a message."""
_BLOCK = 1200
"""Texts and logs with more characters are sent as files, to avoid long scrolling on a phone."""
_EXCERPT = 400
"""How many characters of such a text are shown next to its file."""
_TABLE = 1600
"""The most characters of a table in a message: a page of standings fits, with its title."""
TABLE_COLUMNS = 38
"""The widest table, in columns of a code block: a phone has about 40. A wider one is a list."""
_DIFF_COLUMNS = 35
"""The longest line of a difference, without its sign; a highlighted block is a little narrower."""
_UTC = " (UTC)"
"""The end of a column's name if its cells are times in UTC."""
_MARKS = {
    Tone.PLAIN: "", Tone.STRONG: "### ", Tone.GOOD: "🟢 ", Tone.BAD: "🔴 ", Tone.QUIET: "-# "
}  # fmt: skip
_JOB_MARKS = {Tone.GOOD: "🟢 ", Tone.BAD: "🔴 "}
_THREAD_NAME = 100
"""Characters in a thread's name."""
_FILE_NAME = 50
"""How many of these characters the file's name may take; also its limit in a public line."""


@dataclass(frozen=True, slots=True)
class MessageDraft:
    """A message of at most 2,000 characters and ten files."""

    content: str
    files: tuple[Attachment, ...] = ()


def message_drafts(report: Report) -> tuple[MessageDraft, ...]:
    """Return the messages that show the whole report, in order."""
    parts = [f"**{line(report.title)}**"]
    files: list[Attachment] = []
    for number, block in enumerate(report.blocks, start=1):
        text, file = _draw_block(block, number)
        if number > 1 and _needs_space(report.blocks[number - 2], block):
            text = f"\n{text}"
        parts += [text] if text else []
        files += [] if file is None else [file]
    return tuple(_pack(parts, files))


def _needs_space(before: Block, block: Block) -> bool:
    """Return whether a verdict follows the small print of another GPU type."""
    small_print = isinstance(before, Text) and before.tone is Tone.QUIET
    return small_print and isinstance(block, Text) and block.tone in {Tone.GOOD, Tone.BAD}


def _draw_block(block: Block, number: int) -> tuple[str, Attachment | None]:
    match block:
        case Text():
            return _paragraph(block, number)
        case Table() | Chart():
            return _table(as_table(block) if isinstance(block, Chart) else block, number)
        case Log(title, text, syntax):
            shown = _wrapped(text) if syntax == "diff" else text
            return _block(title, shown, number, syntax=syntax or "txt")
        case Link(text, url):
            return f"{line(text)}: <{url}>", None
        case Attachment():
            return "", block  # Discord shows it, with its name
        case _:
            assert_never(block)


def _table(table: Table, number: int) -> tuple[str, Attachment | None]:
    """Return a table as aligned columns if a phone has room for them, otherwise as a list."""
    lines = list(table_lines(_without_empty_columns(table)))
    if not table.is_list and max(map(cell_len, lines)) <= TABLE_COLUMNS:
        return _block(table.title, "\n".join(lines), number, most=_TABLE)
    head = [f"**{line(table.title)}**"] if table.title else []
    listed = "\n".join([*head, *(_entry(table, row) for row in table.rows)])
    if len(listed) <= _TABLE:
        return listed, None
    return _file(table.title, "\n".join(table_lines(table)), number)


def _without_empty_columns(table: Table) -> Table:
    """Return the table without the columns that are empty in every row."""
    kept = [n for n in range(len(table.columns)) if not table.rows or any(r[n] for r in table.rows)]
    rows = tuple(tuple(row[n] for n in kept) for row in table.rows)
    return Table(table.title, tuple(table.columns[n] for n in kept), rows)


def _entry(table: Table, row: Sequence[str]) -> str:
    """Return a row as a line: its first cell, then each other one, with its column's name."""
    parts = [f"{'' if table.is_list else '- '}**{_cell(table.columns[0].name, row[0])}**"]
    for column, cell in zip(table.columns[1:], row[1:], strict=True):
        name = "" if table.is_list else f"{line(column.name.removesuffix(_UTC))} "
        parts += [f"{name}{_cell(column.name, cell)}"] if cell.strip() else []
    return " · ".join(parts)


def _cell(column: str, cell: str) -> str:
    """Return a cell on one line; a time of day is one that Discord shows."""
    flat = one_line(cell)
    if not column.endswith(_UTC):
        return with_times(flat)
    return with_times(f"{flat} UTC").replace(":f>", ":R>").removesuffix(" UTC")


def _paragraph(block: Text, number: int) -> tuple[str, Attachment | None]:
    text, tone, escaped = block.text, block.tone, markdown if block.has_markdown else with_times
    safe = escaped(text).strip()
    mark = _MARKS[tone]
    if len(safe) > _BLOCK:
        file_line, file = _block("message", text, number)
        excerpt = escaped(text[:_EXCERPT]).strip()
        return f"{mark}{excerpt} ...\n-# {file_line}", file
    separator = f"\n{mark}" if tone is Tone.QUIET else "\n"
    return mark + separator.join(safe.splitlines()), None


def _block(
    title: str, text: str, number: int, *, most: int = _BLOCK, syntax: str = ""
) -> tuple[str, Attachment | None]:
    inside = unfenced(text)
    if len(inside) <= most:
        return f"**{line(title)}**\n{fenced(text, syntax)}", None
    return _file(title, text, number, syntax or "txt")


_WRAPPER = textwrap.TextWrapper(
    _DIFF_COLUMNS,
    subsequent_indent="  ",
    expand_tabs=False,
    replace_whitespace=False,
    drop_whitespace=False,
    break_on_hyphens=False,
)
_HEADS = ("--- ", "+++ ", "@@ ")


def _wrapped(diff: str) -> str:
    """Return a diff whose lines a phone shows whole: each part begins with the line's sign.

    A long one is returned unchanged, because it is sent as a file.
    """
    if len(diff) > _BLOCK:
        return diff
    lines: list[str] = []
    for each in diff.split("\n"):
        is_whole = len(each) <= _DIFF_COLUMNS + 1 or each.startswith(_HEADS)
        lines += [each] if is_whole else [each[0] + part for part in _WRAPPER.wrap(each[1:])]
    wrapped = "\n".join(lines)
    return wrapped if len(wrapped) <= _BLOCK else diff


def _file(title: str, text: str, number: int, syntax: str = "txt") -> tuple[str, Attachment]:
    name = f"{number}-{_slug(title)}.{syntax}"
    return f"{line(title)}: see {name}", Attachment(name, clean(text).encode()[:FILE_BYTES])


def _slug(title: str) -> str:
    kept = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in title)
    return kept.strip("-").lower()[:40] or "text"


def _pack(parts: Sequence[str], files: Sequence[Attachment]) -> Iterator[MessageDraft]:
    """Yield as few messages as possible; files come with the last one, ten at a time."""
    *first, last = join_into_messages(parts)
    yield from (MessageDraft(text) for text in first)
    yield MessageDraft(last, tuple(files[:FILES]))
    for start in range(FILES, len(files), FILES):
        yield MessageDraft("-# more files", tuple(files[start : start + FILES]))


def join_into_messages(parts: Iterable[str]) -> Iterator[str]:
    """Yield the parts, joined by line breaks, in as few messages as possible."""
    text = ""
    for part in parts:
        joined = f"{text}\n{part}" if text else part
        if text and len(joined) > MESSAGE_LIMIT:
            yield text
            joined = part
        text = joined
    if text:
        yield text


async def with_pictures(report: Report) -> Report:
    """Return the report with a picture for each chart; a chart that cannot be drawn stays."""
    blocks = [await _with_picture(block) for block in report.blocks]
    return replace(report, blocks=tuple(blocks))


async def _with_picture(block: Block) -> Block:
    if not isinstance(block, Chart):
        return block
    try:
        picture = await asyncio.to_thread(_png, block)
    except Exception:  # noqa: BLE001 - when matplotlib fails, the numbers can still be shown
        _log.exception("a chart could not be drawn", action="undrawn", title=block.title)
        return block
    return Attachment(_file_name(block.title), picture, describe_chart(block))


def _png(chart: Chart) -> bytes:
    from bot.discord import plots  # noqa: PLC0415 - matplotlib takes a second to load

    return plots.png(chart)


def _file_name(title: str) -> str:
    words = re.findall("[a-z0-9]+", title.lower())
    return f"{'-'.join(words)[:60] or 'chart'}.png"


def headline(status: SubmissionStatus) -> str:
    """Return the first line of the live message, which never changes."""
    submission = status.submission
    name = line(submission.file_name, 60)
    board = line(status.board.name)
    return f"**Submission #{submission.id}**: {name}, {submission.mode} on **{board}**"


def live_text(status: SubmissionStatus) -> str:
    """Return the submission, one line per GPU type, and any warning."""
    warning = warning_of(status)
    warnings = [f"-# Warning: {line(warning, 400)}"] if warning else []
    jobs = [*map(job_line, status.jobs), *confirmation_lines(status)]
    return _fit_message([headline(status), *map(_quoted, jobs), *warnings])


def _quoted(text: Text) -> str:
    return f"> {_marked(text)}"


def _marked(text: Text) -> str:
    return f"{_JOB_MARKS.get(text.tone, '')}{line(text.text, 150)}"


def confirmation_text(status: SubmissionStatus) -> str:
    """Return how the confirmations of a submission ended, as a message of its own."""
    head = f"**Submission #{status.submission.id}**: its confirmation has ended"
    lines = [
        f"{_MARKS.get(each.tone, '')}{line(each.text, 600)}" for each in confirmation_lines(status)
    ]
    return _fit_message([head, *lines])


def answer_text(status: SubmissionStatus) -> str:
    """Return the live message in the answer to a command, and how to show the submission again."""
    return f"{live_text(status)[: MESSAGE_LIMIT - 100]}\n{again_line(status)}"


def again_line(status: SubmissionStatus) -> str:
    """Return the line that says how to show the submission again."""
    return f"-# `/submission show id:{status.submission.id}` shows this again."


def result_text(status: SubmissionStatus, user: int) -> str:
    """Return the notification that a result is ready, with the verdict per GPU type."""
    name, board = line(status.submission.file_name, 60), line(status.board.name)
    head = f"<@{user}>, your result is ready: submission #{status.submission.id} {name} on {board}"
    return _fit_message([head, *map(_marked, map(job_line, status.jobs))])


def private_thread_name(board: Board, name: str, person: int) -> str:
    """Return the unique name of a person's thread; thread names have no markup."""
    return f"{one_line(board.name)[:50]}: {one_line(name)[:30]} ({person})"


def public_thread_name(board: Board) -> str:
    """Return the name of a board's public thread."""
    return f"Results of {one_line(board.name)}"[:_THREAD_NAME]


def results_headline(board: Board) -> str:
    """Return the message under which a board's public thread is opened."""
    return f"**Results of {line(board.name)}**"


def public_line(status: SubmissionStatus, user: int, placements: Sequence[Placement]) -> str:
    """Return a submission's owner and name, and its rank on each GPU type."""
    name, board = line(status.submission.file_name, _FILE_NAME), line(status.board.name)
    head = f"<@{user}>'s submission #{status.submission.id} {name} on {board}"
    return _fit_message([head, *(each.text for each in placement_lines(placements, status))])


def _fit_message(lines: Sequence[str]) -> str:
    """Join the lines into one message; replace those that do not fit by their number."""
    text = "\n".join(lines)
    shown = len(lines)
    while len(text) > MESSAGE_LIMIT:
        shown -= 1
        text = "\n".join([*lines[:shown], f"-# and {len(lines) - shown} more"])
    return text
