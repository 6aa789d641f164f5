"""Sources in colours: classes alone, since no page may style anything inline."""

from typing import Final

from markupsafe import Markup, escape
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

from bot.reports.escaping import clean
from bot.services.apart import Apart, BusyError, TooHardError
from bot.services.cache import Latest, always
from runners.languages import spec_by_suffix

MOST = 50_000
"""Characters that are coloured; longer ones are shown plain, for each takes ten on the page."""
_OTHERS = {"triton": "python"} | dict.fromkeys(("cc", "c", "h", "hpp"), "cpp")
"""The lexers of files that no submission is, by their ending."""
COLOURS: Final = Apart(2.0, patience_s=4.0)
"""Where sources are coloured: a lexer needs minutes for some, such as 49,000 empty lines of C++."""
_COLOURED: Final = Latest[Markup](64)


async def highlighted(text: str, file_name: str) -> Markup:
    """The text by lines, each numbered by the style sheet; coloured by what its name says it is."""
    cleaned, lexer = clean(text), _lexer(file_name.rpartition(".")[2].lower())
    if lexer is None or len(cleaned) > MOST:
        return plain(cleaned)

    async def make() -> Markup:
        try:
            return Markup(await COLOURS.do(coloured, cleaned, lexer))  # noqa: S704 - Pygments escapes
        except TooHardError:
            return plain(cleaned)

    try:
        return await _COLOURED.get((cleaned, lexer), make, current=always, lag_s=0.0)
    except BusyError:
        return plain(cleaned)


def plain(text: str) -> Markup:
    """The text by lines, without colours."""
    lines = "".join(
        f'<span id="line-{number}">{escape(line)}\n</span>'
        for number, line in enumerate(text.split("\n"), start=1)
    )
    return Markup(f'<pre class="lines">{lines}</pre>')  # noqa: S704 - escaped above


def coloured(text: str, lexer: str) -> str:
    """The text as the lexer of that name has Pygments draw it; only ever called apart."""
    formatter = HtmlFormatter(cssclass="lines", linespans="line", linenos=False)
    return str(highlight(text, get_lexer_by_name(lexer, stripnl=False), formatter))


def _lexer(suffix: str) -> str | None:
    language = spec_by_suffix(f".{suffix}")
    return _OTHERS.get(suffix) if language is None else language.lexer
