"""A task's statement as HTML: Markdown, highlighted code, formulas as MathML, drawings of the task.

The text is untrusted. It is rendered in a separate process with limits on time and memory. Raw HTML
is text, the only images are SVG files of the task, and a formula keeps only harmless MathML.
"""

import re
from collections.abc import Sequence
from html import unescape
from typing import Final
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
from pygments.util import ClassNotFound

from bot.reports.escaping import clean
from bot.services.cache import SharedCache, always
from bot.services.parser_process import BusyError, TooHardError
from bot.web.markup import HIGHLIGHTER

MOST = 100_000
"""Characters up to which a statement is rendered; a longer one is shown as text."""
MOST_FORMULA = 2_000
"""Characters of the longest formula; a longer one is shown as code."""
RENDERER: Final = HIGHLIGHTER
"""The process of the highlighter, so that a first page waits for only one to start."""
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
"""The level of a statement's topmost heading: its page and its section have the two above."""
_RENDERED: Final = SharedCache[Markup](64)


async def statement(text: str, files: str, drawings: Sequence[str]) -> Markup:
    """Return the statement as HTML; `files` is the address below which its drawings are."""
    cleaned = clean(text)
    if len(cleaned) > MOST:
        return _as_text(cleaned)
    names = tuple(name for name in drawings if _DRAWING.fullmatch(name))

    async def make() -> Markup:
        try:
            return Markup(await RENDERER.call(render, cleaned, files, names))  # noqa: S704 - `render` escapes
        except TooHardError:
            return _as_text(cleaned)

    try:
        return await _RENDERED.get((cleaned, files, names), make, current=always, lag_s=0.0)
    except BusyError:
        return _as_text(cleaned)


def _as_text(text: str) -> Markup:
    return Markup('<p class="pre">{}</p>').format(text)


def render(text: str, files: str, drawings: tuple[str, ...]) -> str:
    """Return Markdown as HTML; only called in its own process."""
    markdown = MarkdownIt("commonmark", {"html": False, "highlight": _highlighted})
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


def _highlighted(code: str, language: str, _: str) -> str:
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
