"""Turns untrusted text into HTML: highlighted sources, and messages that name a line of one."""

import re
from collections import deque
from typing import Final

from markupsafe import Markup, escape
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

from bot.reports.escaping import clean
from bot.services.cache import SharedCache, always
from bot.services.parser_process import BusyError, ParserProcess, TooHardError
from runners.languages import spec_by_suffix

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
