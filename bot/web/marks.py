"""A task's description as HTML: supports a small part of Markdown, and escapes the rest.

Every line is parsed once, in linear time. The lines of a paragraph flow; tables, lists and indented
formulas stay plain text, line by line.
"""

import re
from collections.abc import Iterator
from itertools import groupby

from markupsafe import Markup, escape

from bot.reports.escaping import clean

_HEADING = re.compile(r"#{1,6} (?P<words>.*)")
_FENCE = re.compile(r" {0,3}(?:```|~~~).*")
_LINE_BY_LINE = re.compile(r"(?:[ \t]|[-*+|] |\||\d+[.)] ).*")
"""A line of a list, a table, or an indented formula."""
_SPAN = re.compile(r"`(?P<code>[^`\n]+)`|\*\*(?P<strong>[^*\n]+)\*\*")


def marked(text: str) -> Markup:
    """Return headings, fenced blocks, `code` and **strong** words as HTML, escaped."""
    return Markup("\n").join(_blocks(clean(text).strip("\n").split("\n")))


def _blocks(lines: list[str]) -> Iterator[Markup]:
    held: list[str] = []
    fenced = False
    for line in lines:
        heading = None if fenced else _HEADING.fullmatch(line)
        fence = _FENCE.fullmatch(line) is not None
        if heading is None and not fence:
            held.append(line)
            continue
        yield from _block(held, fenced=fenced)
        held = []
        fenced = fenced != fence
        if heading is not None:
            yield Markup("<h2>{}</h2>").format(_spans(heading["words"].rstrip("# ").lstrip()))
    yield from _block(held, fenced=fenced)


def _block(lines: list[str], *, fenced: bool) -> Iterator[Markup]:
    text = "\n".join(lines)
    if fenced:
        yield Markup('<pre class="log" tabindex="0">{}</pre>').format(text)
    else:
        yield from map(_paragraph, _apart(lines))


def _apart(lines: list[str]) -> Iterator[list[str]]:
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


def _span(found: re.Match[str]) -> str:
    """Return one span of already escaped text as HTML."""
    code, strong = found["code"], found["strong"]
    return f"<strong>{strong}</strong>" if code is None else f"<code>{code}</code>"
