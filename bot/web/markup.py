"""Turns untrusted text into HTML: descriptions of tasks, and highlighted sources.

A description may use headings, code and strong words of Markdown; everything else is escaped. Each
line is parsed once, in linear time. Paragraphs are wrapped by the browser; tables, lists and
indented formulas keep their line breaks.
"""

import re
from collections import deque
from collections.abc import Iterator
from itertools import groupby
from typing import Final

from markupsafe import Markup, escape
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

from bot.reports.escaping import clean
from bot.services.cache import SharedCache, always
from bot.services.parser_process import BusyError, ParserProcess, TooHardError
from runners.languages import spec_by_suffix

_HEADING = re.compile(r"#{1,6} (?P<words>.*)")
_FENCE = re.compile(r" {0,3}(?:```|~~~).*")
_LINE_BY_LINE = re.compile(r"(?:[ \t]|[-*+|] |\||\d+[.)] ).*")
"""A line of a list, a table, or an indented formula."""
_SPAN = re.compile(r"`(?P<code>[^`\n]+)`|\*\*(?P<strong>[^*\n]+)\*\*")


def marked(text: str) -> Markup:
    """Return headings, fenced blocks, `code` and **strong** words as HTML, escaped."""
    return Markup("\n").join(_blocks(clean(text).strip("\n").split("\n")))


def _blocks(lines: list[str]) -> Iterator[Markup]:
    pending: list[str] = []
    fenced = False
    for line in lines:
        heading = None if fenced else _HEADING.fullmatch(line)
        fence = _FENCE.fullmatch(line) is not None
        if heading is None and not fence:
            pending.append(line)
            continue
        yield from _block(pending, fenced=fenced)
        pending = []
        fenced = fenced != fence
        if heading is not None:
            yield Markup("<h2>{}</h2>").format(_spans(heading["words"].rstrip("# ").lstrip()))
    yield from _block(pending, fenced=fenced)


def _block(lines: list[str], *, fenced: bool) -> Iterator[Markup]:
    text = "\n".join(lines)
    if fenced:
        yield Markup('<pre class="log" tabindex="0">{}</pre>').format(text)
    else:
        yield from map(_paragraph, _paragraphs(lines))


def _paragraphs(lines: list[str]) -> Iterator[list[str]]:
    """Yield the lines between empty ones."""
    groups = groupby(lines, key=lambda line: bool(line.strip()))
    return (list(group) for filled, group in groups if filled)


def _paragraph(lines: list[str]) -> Markup:
    text = _spans("\n".join(lines))
    if any(map(_LINE_BY_LINE.fullmatch, lines)):
        return Markup('<p class="pre">{}</p>').format(text)
    return Markup("<p>{}</p>").format(text)


def _spans(text: str) -> Markup:
    return Markup(_SPAN.sub(_span, str(escape(text))))  # noqa: S704  escaped just before


def _span(match: re.Match[str]) -> str:
    """Return one span of already escaped text as HTML."""
    code, strong = match["code"], match["strong"]
    return f"<strong>{strong}</strong>" if code is None else f"<code>{code}</code>"


_LINE = re.compile(
    r"\((?:[\w.+-]{1,100}, )?line (?P<python>\d{1,6})\)"
    r"|(?:^|(?<=\s))submission\.\w{1,8}:(?P<compiled>\d{1,6})(?=: )"
)
"""Where a message names a line of the submission, as Python's and compilers' errors do."""


def _last_line(message: str) -> re.Match[str] | None:
    return next(iter(deque(_LINE.finditer(message), maxlen=1)), None)


def line_of(message: str) -> int | None:
    """Return the line of the submission that a message names last; None if it names none."""
    found = _last_line(message)
    return None if found is None else int(found["python"] or found["compiled"])


def with_line(message: str, page: str) -> Markup:
    """Return a message, escaped, in which the line that it names last is a link to `page`."""
    text = clean(message)
    found = _last_line(text)
    if found is None:
        return escape(text)
    link = Markup('<a href="{}#line-{}">{}</a>').format(page, line_of(text), found[0])
    return escape(text[: found.start()]) + link + escape(text[found.end() :])


MOST = 50_000
"""Characters up to which a source is highlighted; each takes ten on the page."""
_OTHERS = {"triton": "python"} | dict.fromkeys(("cc", "c", "h", "hpp"), "cpp")
"""The lexers of files that are not submissions, by suffix."""
HIGHLIGHTER: Final = ParserProcess(2.0, patience_s=4.0)
"""Highlights sources: a lexer takes minutes for some, such as 49,000 empty lines of C++."""
_HIGHLIGHTED: Final = SharedCache[Markup](64)


async def highlighted(text: str, file_name: str) -> Markup:
    """Return the text by lines, numbered by the style sheet, highlighted by its file name."""
    cleaned, lexer = clean(text), _lexer(file_name.rpartition(".")[2].lower())
    if lexer is None or len(cleaned) > MOST:
        return plain(cleaned)

    async def make() -> Markup:
        try:
            return Markup(await HIGHLIGHTER.call(highlight_with, cleaned, lexer))  # noqa: S704 - Pygments escapes
        except TooHardError:
            return plain(cleaned)

    try:
        return await _HIGHLIGHTED.get((cleaned, lexer), make, current=always, lag_s=0.0)
    except BusyError:
        return plain(cleaned)


MOST_NUMBERED = 5_000
"""The most lines that are numbered without highlighting; each is an element of the page."""


def plain(text: str) -> Markup:
    """Return the text by lines, without highlighting; those after the numbered ones as one text."""
    *first, last = text.split("\n", MOST_NUMBERED)
    numbered, rest = (first, last) if len(first) == MOST_NUMBERED else ([*first, last], "")
    lines = "".join(
        f'<span id="line-{number}">{escape(line)}\n</span>'
        for number, line in enumerate(numbered, start=1)
    )
    return Markup(f'<pre class="lines">{lines}{escape(rest)}</pre>')  # noqa: S704 - escaped above


def highlight_with(text: str, lexer: str) -> str:
    """Return the text highlighted by this lexer of Pygments; only called in its own process."""
    formatter = HtmlFormatter(cssclass="lines", linespans="line", linenos=False)
    return str(highlight(text, get_lexer_by_name(lexer, stripnl=False), formatter))


def _lexer(suffix: str) -> str | None:
    language = spec_by_suffix(f".{suffix}")
    return _OTHERS.get(suffix) if language is None else language.lexer
