"""Draws messages as Discord shows them on a phone 360 pixels wide, as one HTML page.

The measures are those of Discord's app: text of 16 px, code of 14 px (about 40 columns), small text
of 13 px, an avatar of 40 px in the margin of which a phone shows little, and menus as wide as the
message. It reads the payloads that the bot sent; it does not know the bot.
"""

import html
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from types import MappingProxyType

from tests.doubles.discord.kinds import ComponentKind
from tests.doubles.discord.model.messages import Message
from tests.doubles.discord.wire import Json

WIDTH = 360
"""The width of the page in pixels."""
_BLOCK = re.compile(r"```(?:[A-Za-z+#-]*\n)?(.*?)```", re.DOTALL)
_INLINE = re.compile(
    r"(?P<escaped>\\[^A-Za-z0-9\s])|`(?P<code>[^`]+)`|\*\*(?P<bold>.+?)\*\*|__(?P<under>.+?)__"
    r"|\*(?P<italic>[^*]+?)\*|~~(?P<struck>.+?)~~|\[(?P<label>[^\]]+)\]\((?P<target>[^)]+)\)"
    r"|<(?P<bare>https?://[^>]+)>|<t:(?P<time>\d+)(?::(?P<form>[A-Za-z]))?>"
    r"|<(?P<mention>@&?|#)(?P<id>\d+)>|</(?P<command>[^:>]+):\d+>",
)
_MARKED = {"bold": "b", "under": "u", "italic": "i", "struck": "s"}
_LINE = re.compile(r"(?P<mark>#{1,3}|-#|>|[-*]) (?P<rest>.*)")
_TAGS = {"#": "h1", "##": "h2", "###": "h3", "-#": "small", ">": "blockquote"}
_STYLES = {1: "primary", 2: "secondary", 3: "success", 4: "danger", 5: "secondary"}
_FORMS = {
    "t": "%H:%M", "T": "%H:%M:%S", "d": "%d/%m/%Y", "D": "%d %B %Y",
    "f": "%d %B %Y %H:%M", "F": "%A, %d %B %Y %H:%M",
}  # fmt: skip
_UNITS = (
    (31_536_000, "year"), (2_592_000, "month"), (86_400, "day"), (3600, "hour"), (60, "minute"),
    (0, "second"),
)  # fmt: skip
_SIGNS = {
    "🟢": ("#23a55a", ""), "🔴": ("#f23f43", ""), "⚪": ("#dbdee1", ""),
    "🥇": ("#e8b923", "1"), "🥈": ("#b4bac4", "2"), "🥉": ("#c07f46", "3"),
}  # fmt: skip
"""Signs that are drawn as pictures, because many servers have no font with them."""
_CSS = """
*{box-sizing:border-box} body{margin:0;width:360px;padding:8px 12px;font:16px/1.3 'gg sans',
'Noto Sans','DejaVu Sans',Roboto,sans-serif;background:#1a1a1e;color:#dbdee1}
body.light{background:#fff;color:#2e3338}
h1{font-size:22px;margin:8px 0 4px} h2{font-size:19px;margin:8px 0 4px}
h3{font-size:17px;margin:6px 0 2px} p{margin:0;overflow-wrap:anywhere;min-height:1.3em}
small{display:block;font-size:13px;line-height:1.25;color:#949ba4;overflow-wrap:anywhere}
.light small{color:#5c5e66} li{margin-left:18px;overflow-wrap:anywhere}
blockquote{margin:0;padding-left:10px;border-left:4px solid #4e5058;overflow-wrap:anywhere}
pre{font:14px/1.25 'DejaVu Sans Mono',monospace;margin:4px 0;padding:6px 7px;border-radius:4px;
background:#2b2d31;border:1px solid #1e1f22;white-space:pre-wrap;overflow-wrap:anywhere}
.light pre,.light code{background:#f2f3f5;border-color:#e3e5e8}
code{font:14px 'DejaVu Sans Mono',monospace;background:#2b2d31;border-radius:3px;padding:0 3px}
.mention{background:#3c4270;color:#c9cdfb;border-radius:3px;padding:0 2px}
.light .mention{background:#e6e8fd;color:#4752c4} .when{background:#2b2d31;border-radius:3px}
.light .when{background:#ebedef} a{color:#00a8fc;text-decoration:none}
article{border-bottom:1px solid #3f4147;padding:10px 0} .light article{border-color:#e3e5e8}
.who{font-weight:600;margin-bottom:2px} .who span{font-size:11px;color:#fff;background:#5865f2;
border-radius:3px;padding:1px 4px;margin-left:4px} .caption{font-size:12px;color:#b5892e}
button{font:14px 'Noto Sans','DejaVu Sans',sans-serif;border:0;border-radius:8px;color:#fff;
padding:8px 14px;margin:4px 6px 0 0;background:#4e5058} button.primary{background:#5865f2}
button.danger{background:#da373c} button.success{background:#248046}
button:disabled{opacity:.5} .light button.secondary{background:#e3e5e8;color:#2e3338}
.menu{border:1px solid #3f4147;border-radius:8px;padding:9px 12px;margin-top:6px;background:#1e1f22}
.light .menu{background:#fff} img{width:100%;border-radius:6px;margin-top:6px}
.file,.embed,.box{border:1px solid #3f4147;border-radius:8px;padding:8px 10px;margin-top:6px}
.embed{border-left:4px solid #5865f2} .sign{display:inline-block;width:17px;height:17px;
border-radius:50%;font:bold 12px/17px sans-serif;text-align:center;color:#222;vertical-align:-2px}
"""


def page(
    shown: Iterable[tuple[str, Message]],
    names: Mapping[str, str] = MappingProxyType({}),
    *,
    light: bool = False,
) -> str:
    """Return a page of messages, each under its caption; `names` by the ids of mentions."""
    articles = "".join(_article(caption, message) for caption, message in shown)
    theme = ' class="light"' if light else ""
    head = f'<meta charset="utf-8"><title>phone</title><style>{_CSS}</style>'
    for sign, (color, words) in _SIGNS.items():
        drawn = f'<span class="sign" style="background:{color}">{words}</span>'
        articles = articles.replace(sign, drawn)
    articles = _MENTIONED.sub(lambda it: html.escape(names.get(it[1], "someone")), articles)
    return f"<!doctype html>{head}<body{theme}>{articles}</body>"


def code_blocks(message: Message) -> Iterator[str]:
    """Yield the text of each code block of a message."""
    yield from _BLOCK.findall(message.text)


def _article(caption: str, message: Message) -> str:
    parts = [f'<div class="caption">{html.escape(caption)}</div>']
    parts.append('<div class="who">Podium<span>APP</span></div>')
    parts.append(markup(message.content))
    parts += [f'<div class="embed">{_embed(each)}</div>' for each in message.embeds]
    for file in message.files:
        if file.filename.endswith(".png"):
            parts.append(f'<img src="{_data_url(file.data)}">')
        else:
            parts.append(f'<div class="file">File: {html.escape(file.filename)}</div>')
    parts += map(_component, message.components)
    return f"<article>{''.join(parts)}</article>"


def _data_url(data: bytes) -> str:
    import base64  # noqa: PLC0415 - only pages with pictures need it

    return f"data:image/png;base64,{base64.b64encode(data).decode()}"


def _embed(embed: Json) -> str:
    title = f"<b>{html.escape(embed.get('title') or '')}</b>"
    return title + markup(embed.get("description") or "")


def _component(part: Json) -> str:
    match part["type"]:
        case ComponentKind.BUTTON:
            style, label = _STYLES.get(part.get("style", 2), ""), html.escape(part["label"])
            off = " disabled" if part.get("disabled") else ""
            return f'<button class="{style}"{off}>{label}</button>'
        case ComponentKind.TEXT_DISPLAY:
            return markup(part["content"])
        case ComponentKind.LABEL:
            return _field(part)
        case _:
            return _group(part)


def _field(part: Json) -> str:
    """Return a field of a form."""
    about, words = part.get("description") or "", part["component"].get("placeholder") or "…"
    field = f'<div class="menu">{html.escape(words)}</div>'
    return f"<p>{html.escape(part['label'])}</p><small>{html.escape(about)}</small>{field}"


def _group(part: Json) -> str:
    """Return a menu, a line or a container of components."""
    if part["type"] == ComponentKind.SEPARATOR:
        return "<hr>"
    inside = "".join(map(_component, part.get("components", ())))
    if "options" in part:
        chosen = [each["label"] for each in part["options"] if each.get("default")]
        words = ", ".join(chosen) or part.get("placeholder") or ""
        return f'<div class="menu">{html.escape(words)} ▾</div>'
    kind = "box" if part["type"] == ComponentKind.CONTAINER else "row"
    accessory = _component(part["accessory"]) if part.get("accessory") else ""
    return f'<div class="{kind}">{inside}{accessory}</div>'


def markup(text: str) -> str:
    """Return Discord's markup as HTML."""
    parts: list[str] = []
    position = 0
    for block in _BLOCK.finditer(text):
        parts.append(_lines(text[position : block.start()].removesuffix("\n")))
        parts.append(f"<pre>{html.escape(block[1].rstrip())}</pre>")
        position = block.end() + text[block.end() :].startswith("\n")
    parts.append(_lines(text[position:]))
    return "".join(parts)


def _lines(text: str) -> str:
    return "".join(map(_line, text.split("\n"))) if text else ""


def _line(line: str) -> str:
    found = _LINE.fullmatch(line)
    if found is None:
        return f"<p>{_inline(line)}</p>"
    tag, inside = _TAGS.get(found["mark"], "li"), found["rest"]
    return f"<{tag}>{_line(inside) if tag == 'blockquote' else _inline(inside)}</{tag}>"


def _inline(text: str) -> str:
    parts: list[str] = []
    position = 0
    for found in _INLINE.finditer(text):
        parts += html.escape(text[position : found.start()]), _marked(found)
        position = found.end()
    return "".join(parts) + html.escape(text[position:])


def _marked(found: re.Match[str]) -> str:
    for name, tag in _MARKED.items():
        if found[name] is not None:
            return f"<{tag}>{_inline(found[name])}</{tag}>"
    if found["escaped"]:
        return html.escape(found["escaped"][1:])
    if found["code"]:
        return f"<code>{html.escape(found['code'])}</code>"
    return _reference(found)


def _reference(found: re.Match[str]) -> str:
    """Return a time, a link or a mention."""
    if found["time"]:
        at = datetime.fromtimestamp(int(found["time"]), UTC)
        form = found["form"] or "f"
        shown = relative(at, datetime.now(UTC)) if form == "R" else at.strftime(_FORMS[form])
        return f'<span class="when">{shown}</span>'
    if found["label"] or found["bare"]:
        return f"<a>{html.escape(found['label'] or found['bare'])}</a>"
    words = f"/{found['command']}" if found["command"] else _mention(found)
    return f'<span class="mention">{html.escape(words)}</span>'


def _mention(found: re.Match[str]) -> str:
    return f"{found['mention'][0]}\x00{found['id']}\x00"


_MENTIONED = re.compile("\x00([0-9]+)\x00")
"""An id in a drawn page, in the place of its name."""


def relative(at: datetime, now: datetime) -> str:
    """Return a time as Discord shows it relative to now, such as `in 3 days` or `an hour ago`."""
    seconds = round((at - now).total_seconds())
    size, unit = next((size, unit) for size, unit in _UNITS if abs(seconds) >= size)
    count = abs(seconds) // max(size, 1)
    one = "an" if unit == "hour" else "a"
    words = f"{one} {unit}" if count == 1 else f"{count} {unit}s"
    return f"in {words}" if seconds > 0 else f"{words} ago"
