"""Turns untrusted text into HTML: sources, messages that name a line of one, and statements.

A task's statement is Markdown with formulas. It is rendered in a separate process with limits on
time and memory. Raw HTML is text, the only images are SVG files of the task, and a formula keeps
only harmless MathML.
"""

import re
from collections import deque
from collections.abc import Callable, Sequence
from html import unescape
from typing import Final, TypeVar
from urllib.parse import quote
from xml.etree import ElementTree as ET

from latex2mathml.converter import convert_to_element
from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markupsafe import Markup, escape
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.token import STANDARD_TYPES
from pygments.util import ClassNotFound

from bot.reports.difference import Colored
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


def with_code(text: str) -> Markup:
    """Return the text as HTML, in which parts between backticks are code."""
    pieces = re.split(r"`([^`]+)`", clean(text))  # every second one was between backticks
    code = Markup("<code>{}</code>")
    return Markup("").join(code.format(each) if at % 2 else each for at, each in enumerate(pieces))


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
_HIGHLIGHTED: Final = SharedCache[str | None](64)


async def highlighted(text: str, file_name: str) -> Markup:
    """Return the text by lines, numbered by the style sheet, highlighted by its file name."""
    found = await _lexed(_HIGHLIGHTED, highlight_with, text, file_name)
    return plain(clean(text)) if found is None else Markup(found)  # noqa: S704 - Pygments escapes


_T = TypeVar("_T")


async def _lexed(
    cache: SharedCache[_T | None], work: Callable[[str, str], _T], text: str, file_name: str
) -> _T | None:
    """Return what `work` makes of a text and its lexer; None without a lexer, or if it fails."""
    cleaned, lexer = clean(text), _lexer(file_name.rpartition(".")[2].lower())
    if lexer is None or len(cleaned) > MOST:
        return None

    async def make() -> _T | None:
        try:
            return await HIGHLIGHTER.call(work, cleaned, lexer)
        except TooHardError:
            return None

    try:
        return await cache.get((cleaned, lexer), make, current=always, lag_s=0.0)
    except BusyError:
        return None


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


_COLORED = frozenset(
    {"k", "kc", "kd", "kn", "kr", "ow", "s", "s1", "s2", "sa", "sb", "sd", "se", "si", "sh", "cpf",
     "c", "c1", "ch", "cm", "cs", "m", "mb", "mf", "mh", "mi", "mo", "kt", "nb", "bp", "nf", "fm",
     "nc", "nd", "cp"}
)  # fmt: skip
"""The classes that the style sheet colors."""
_LINES: Final = SharedCache[tuple[Colored, ...] | None](32)


async def colored_lines(text: str, file_name: str) -> tuple[Colored, ...]:
    """Return the parts of each line of a text, by color; empty if it cannot be highlighted."""
    return await _lexed(_LINES, color_with, text, file_name) or ()


def color_with(text: str, lexer: str) -> tuple[Colored, ...]:
    """Return the parts of each line, by color; only called in its own process."""
    lines: list[list[tuple[str, str]]] = [[]]
    for kind, value in get_lexer_by_name(lexer, stripnl=False).get_tokens(text):
        names = [STANDARD_TYPES.get(each, "") for each in kind.split()]
        name = next((each for each in reversed(names) if each), "")
        color = name if name in _COLORED else ""
        for number, part in enumerate(value.split("\n")):
            if number:
                lines.append([])
            if part and lines[-1] and lines[-1][-1][0] == color:
                lines[-1][-1] = (color, lines[-1][-1][1] + part)
            elif part:
                lines[-1].append((color, part))
    return tuple(map(tuple, lines))


def _lexer(suffix: str) -> str | None:
    language = spec_by_suffix(f".{suffix}")
    return _OTHERS.get(suffix) if language is None else language.lexer


MOST_STATEMENT = 100_000
"""Characters up to which a statement is rendered; a longer one is shown as text."""
MOST_FORMULA = 2_000
"""Characters of the longest formula; a longer one is shown as code."""
_FORMULA = re.compile(
    r"\$\$(?P<block>[^$]{1,4000})\$\$|\$(?P<inline>(?!\s)[^$\n]{1,2000})(?<!\s)\$(?!\d)"
)
_DRAWING = re.compile(r"[\w-][\w.-]{0,99}\.svg")
_MATH_ATTRIBUTES = frozenset(
    {"accent", "columnalign", "display", "displaystyle", "fence", "form", "linethickness", "lspace",
     "mathvariant", "maxsize", "minsize", "movablelimits", "rspace", "scriptlevel", "separator",
     "stretchy", "symmetric", "width"}
)  # fmt: skip
_FIRST_LEVEL = 3
"""The level of a statement's topmost heading; the page and the section have levels 1 and 2."""
_STATEMENTS: Final = SharedCache[Markup](64)


async def statement(text: str, files: str, drawings: Sequence[str]) -> Markup:
    """Return the statement as HTML; `files` is the address below which its drawings are."""
    cleaned = clean(text)
    if len(cleaned) > MOST_STATEMENT:
        return _as_text(cleaned)
    names = tuple(name for name in drawings if _DRAWING.fullmatch(name))

    async def make() -> Markup:
        try:
            return Markup(await HIGHLIGHTER.call(render_statement, cleaned, files, names))  # noqa: S704 - it escapes
        except TooHardError:
            return _as_text(cleaned)

    try:
        return await _STATEMENTS.get((cleaned, files, names), make, current=always, lag_s=0.0)
    except BusyError:
        return _as_text(cleaned)


def _as_text(text: str) -> Markup:
    return Markup('<p class="pre">{}</p>').format(text)


def render_statement(text: str, files: str, drawings: tuple[str, ...]) -> str:
    """Return Markdown as HTML; only called in its own process."""
    markdown = MarkdownIt("commonmark", {"html": False, "highlight": _fenced})
    markdown.enable(["table", "strikethrough"])
    markdown.inline.ruler.before("escape", "formula", _formula_rule)

    def formula(_: object, tokens: Sequence[Token], at: int, *__: object) -> str:
        return _formula(tokens[at].content, tokens[at].markup)

    def image(_: object, tokens: Sequence[Token], at: int, *__: object) -> str:
        return _image(tokens[at], files, drawings)

    markdown.add_render_rule("formula", formula)
    markdown.add_render_rule("image", image)
    tokens = markdown.parse(text)
    _settle_headings(tokens)
    for token in tokens:
        if token.type == "table_open":
            token.attrSet("tabindex", "0")
    html: str = markdown.renderer.render(tokens, markdown.options, {})
    return html.replace("<a href=", '<a rel="nofollow noopener ugc" href=')


def _settle_headings(tokens: Sequence[Token]) -> None:
    """Let headings begin below those of the page, and skip no level."""
    opening = [each for each in tokens if each.type == "heading_open"]
    top = min((int(each.tag[1]) for each in opening), default=1)
    last = _FIRST_LEVEL - 1
    for token in tokens:
        if token.type == "heading_open":
            last = min(int(token.tag[1]) - top + _FIRST_LEVEL, last + 1, 6)
        if token.type in {"heading_open", "heading_close"}:
            token.tag = f"h{last}"


def _fenced(code: str, language: str, _: str) -> str:
    """Return a fenced block; its language is a name of Pygments' lexers, else it is plain."""
    body = str(escape(code))
    try:
        lexer = get_lexer_by_name(language, stripnl=False) if language else None
    except ClassNotFound:
        lexer = None
    if lexer is not None:
        body = highlight(code, lexer, HtmlFormatter(nowrap=True))
    return f'<pre class="log" tabindex="0">{body}</pre>'


def _formula_rule(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - as the library calls it
    if state.src[state.pos] != "$":
        return False
    found = _FORMULA.match(state.src, state.pos)
    if found is None:
        return False
    if not silent:
        token = state.push("formula", "", 0)
        token.content = found["block"] or found["inline"]
        token.markup = "block" if found["block"] else "inline"
    state.pos = found.end()
    return True


def _formula(source: str, display: str) -> str:
    """Return a formula as MathML without links, styles and scripts; as code if it is none."""
    if len(source) > MOST_FORMULA:
        return f"<code>{escape(source)}</code>"
    try:
        element = convert_to_element(source, display=display)
    except Exception:  # noqa: BLE001 - whatever the library raises for untrusted text
        return f"<code>{escape(source)}</code>"
    for each in element.iter():
        if not each.tag.startswith("m"):
            return f"<code>{escape(source)}</code>"
        kept = {name: value for name, value in each.attrib.items() if name in _MATH_ATTRIBUTES}
        each.attrib.clear()
        each.attrib.update(kept)
        each.text = unescape(each.text or "")  # the library writes signs as entities
    return ET.tostring(element, encoding="unicode", method="html")


def _image(token: Token, files: str, drawings: Sequence[str]) -> str:
    """Return a drawing of the task; of any other image, its description."""
    source = str(token.attrGet("src") or "")
    if source not in drawings:
        return str(escape(token.content))
    address = f"{files}/{quote(source)}"
    return f'<img class="drawing" src="{escape(address)}" alt="{escape(token.content)}">'
