"""Escapes untrusted text for Discord: no markup, no mention, no broken fence."""

import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

import discord

from bot.reports.escaping import clean, one_line

MESSAGE_LIMIT = 2000
"""Characters in a message."""
_SPECIAL = re.compile(r"<(?=[@#/:]|a:|t:|id:)")
"""Starts a mention, a command, an emoji, a time or a link within the server."""
_ADDRESS = re.compile(r"((?<![\w<])https?://[A-Za-z0-9._~/%#?=&+:,@-]*[A-Za-z0-9/])")
"""An address that stays clickable; it contains no markup characters except `_` and `~`."""
_MARKUP = re.compile(r"[\\`*_~|]")
_LEADING = re.compile(r"^([ \t]*)([#>-])", re.MULTILINE)
"""A heading, a quotation or a list at the start of a line."""
_TIME = re.compile(
    r"(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2}) (?P<time>[0-9]{2}:[0-9]{2}) "
    r"(?:UTC|\S{1,9} \((?:(?P<utc_day>[0-9]{4}-[0-9]{2}-[0-9]{2}) )?"
    r"(?P<utc>[0-9]{2}:[0-9]{2}) UTC\))"
)
"""A date and time in UTC, or in another zone followed by that in UTC, see `show_deadline`."""
_HEADING = re.compile(r"^ {0,3}(?P<level>#{1,6})[ \t]+(?P<words>.+)$", re.MULTILINE)
_CODE = re.compile(r"(```[\s\S]*?```|`[^`\n]+`)")
"""Code in Markdown, in which nothing is a mention."""
_ZERO_WIDTH_SPACE = "\u200b"
"""A space of zero width, which separates backticks so that they do not end a block."""


def plain(text: str) -> str:
    """Return the text escaped so that Discord shows it as it is, without markup or mentions."""
    safe = "".join(
        part if _ADDRESS.fullmatch(part) else _escape_markup(part)
        for part in _ADDRESS.split(clean(text))
    )
    return _SPECIAL.sub(r"\\<", discord.utils.escape_mentions(safe))


def markdown(text: str) -> str:
    """Return Markdown by other people as Discord draws it; mentions and links stay text.

    Discord has headings of three sizes. The largest is too large for a phone.
    """
    whole = clean(text)
    parts = _CODE.split(f"{whole}\n```" if whole.count("```") % 2 else whole)
    return "".join(part if number % 2 else _drawn(part) for number, part in enumerate(parts))


def _drawn(text: str) -> str:
    safe = _SPECIAL.sub(r"\\<", discord.utils.escape_mentions(text)).replace("](", "]\\(")
    safe = safe.replace("||", "\\|\\|")  # would hide text
    return _HEADING.sub(_heading, safe)


def _heading(found: re.Match[str]) -> str:
    sign = "##" if len(found["level"]) == 1 else "###"
    return f"{sign} {found['words'].strip().rstrip('#').strip()}"


def _escape_markup(text: str) -> str:
    """Escape markup in time linear in the length.

    discord.py's `escape_markdown` takes minutes for ten thousand times `[a](`, and does not escape
    what it considers a link, such as `steam://` followed by a fence.
    """
    flat = _LEADING.sub(r"\1\\\2", _MARKUP.sub(r"\\\g<0>", text))
    return flat.replace("](", "]\\(")


def discord_time(at: datetime) -> str:
    """Return a time as Discord shows it: in the reader's zone and language, with the time left."""
    number = math.ceil(at.timestamp())  # rounded up, so that it is never shown early
    return f"<t:{number}:F> (<t:{number}:R>)"


def with_times(text: str) -> str:
    """Return the escaped text; times that name UTC become times that Discord shows."""
    parts: list[str] = []
    position = 0
    for found in _TIME.finditer(text):
        moment = _moment(found)
        if moment is not None:
            parts += plain(text[position : found.start()]), short_time(moment)
            position = found.end()
    return "".join(parts) + plain(text[position:])


def _moment(found: re.Match[str]) -> datetime | None:
    day, time = found["utc_day"] or found["day"], found["utc"] or found["time"]
    try:
        return datetime.fromisoformat(f"{day} {time}").replace(tzinfo=UTC)
    except ValueError:  # somebody's text with a day that does not exist
        return None


def short_time(at: datetime) -> str:
    """Return a date and a time as Discord shows them: in the reader's zone and language."""
    return f"<t:{math.ceil(at.timestamp())}:f>"


def with_discord_times(text: str, moments: Mapping[str, datetime]) -> str:
    """Return the escaped text; words in `moments` become times that Discord shows."""
    for words, at in moments.items():
        head, found, tail = text.rpartition(words)
        if found:
            others = {each: moments[each] for each in moments if each != words}
            return (
                with_discord_times(head, others)
                + discord_time(at)
                + with_discord_times(tail, others)
            )
    return plain(text)


def line(text: str, most: int = 200, escape: Callable[[str], str] = plain) -> str:
    """Return the text on one line, escaped and at most this long."""
    flat = one_line(text)
    return escape(flat if len(flat) <= most else f"{flat[: most - 1]}…")


def fenced(text: str, syntax: str = "") -> str:
    """Return the text unchanged in a code block; `syntax` is trusted."""
    return f"```{syntax}\n{unfenced(text)}\n```"


def unfenced(text: str) -> str:
    """Return the text without anything that would end the block around it."""
    return clean(text).replace("```", f"`{_ZERO_WIDTH_SPACE}`{_ZERO_WIDTH_SPACE}`").rstrip("\n")
