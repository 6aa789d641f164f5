"""Escapes untrusted text for Discord: no markup, no mention, no broken fence."""

import math
import re
from collections.abc import Mapping
from datetime import datetime

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
_ZERO_WIDTH_SPACE = "\u200b"
"""A space of zero width, which separates backticks so that they do not end a block."""


def plain(text: str) -> str:
    """Return the text escaped so that Discord shows it as it is, without markup or mentions."""
    safe = "".join(
        part if _ADDRESS.fullmatch(part) else _escape_markup(part)
        for part in _ADDRESS.split(clean(text))
    )
    return _SPECIAL.sub(r"\\<", discord.utils.escape_mentions(safe))


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


def line(text: str, most: int = 200) -> str:
    """Return the text on one line, escaped and at most this long."""
    flat = one_line(text)
    return plain(flat if len(flat) <= most else f"{flat[: most - 1]}…")


def fenced(text: str, syntax: str = "") -> str:
    """Return the text unchanged in a code block; `syntax` is trusted."""
    return f"```{syntax}\n{unfenced(text)}\n```"


def unfenced(text: str) -> str:
    """Return the text without anything that would end the block around it."""
    return clean(text).replace("```", f"`{_ZERO_WIDTH_SPACE}`{_ZERO_WIDTH_SPACE}`").rstrip("\n")
