"""Sources in colours: classes alone, since no page may style anything inline."""

import re
from functools import lru_cache

from markupsafe import Markup, escape
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers.c_cpp import CppLexer
from pygments.lexers.python import PythonLexer

from bot.reports.lines import clean

MOST = 50_000
"""Characters that are coloured; longer ones are shown plain, for each takes ten on the page."""
_LONGEST_LINE = 2_000
_LONG_GAP = re.compile(r"\s{150}")
"""The lexer of C++ looks through all the space behind each line's end: the time for it grows with
the square, and 49,000 empty lines take three minutes."""
_MOST_RAW = 20
"""Raw strings of C++: one that does not end is looked for to the end of the text."""
_CPP = ("cu", "cuh", "cpp", "cc", "c", "h", "hpp")


@lru_cache(maxsize=64)
def highlighted(text: str, file_name: str) -> Markup:
    """The text by lines, each numbered by the style sheet; coloured by what its name says it is."""
    cleaned = clean(text)
    lexer = _lexer(file_name)
    if lexer is None or len(cleaned) > MOST or _is_hard(cleaned):
        lines = "".join(
            f'<span id="line-{number}">{escape(line)}\n</span>'
            for number, line in enumerate(cleaned.split("\n"), start=1)
        )
        return Markup(f'<pre class="lines">{lines}</pre>')  # noqa: S704 - escaped above
    formatter = HtmlFormatter(cssclass="lines", linespans="line", linenos=False)
    return Markup(highlight(cleaned, lexer, formatter))  # noqa: S704 - Pygments escapes


def _lexer(file_name: str) -> Lexer | None:
    suffix = file_name.rpartition(".")[2].lower()
    if suffix in {"py", "triton"}:
        return PythonLexer(stripnl=False)
    return CppLexer(stripnl=False) if suffix in _CPP else None


def _is_hard(text: str) -> bool:
    """Whether a lexer could need minutes for it, in a thread that nobody can end."""
    wide = max(map(len, text.split("\n"))) > _LONGEST_LINE
    return wide or text.count('R"') > _MOST_RAW or _LONG_GAP.search(text) is not None
