"""Makes other people's text safe to show on Discord: no markup, no mention, no broken fence."""

import math
import re
from collections.abc import Mapping
from datetime import datetime

import discord

from bot.reports.escaping import clean, one_line

MOST = 2000
"""Characters in a message."""
_SPECIAL = re.compile(r"<(?=[@#/:]|a:|t:|id:)")
"""Begins a mention, a command, an emoji, a time or a link into the server."""
_ADDRESS = re.compile(r"((?<![\w<])https?://[A-Za-z0-9._~/%#?=&+:,@-]*[A-Za-z0-9/])")
"""An address that a person can still click on: of nothing that could be markup but `_` and `~`."""
_MARKUP = re.compile(r"[\\`*_~|]")
_LEADING = re.compile(r"^([ \t]*)([#>-])", re.MULTILINE)
"""A heading, a quotation or a list at the beginning of a line."""
_BLIND = "\u200b"
"""Takes no room, and keeps three backticks from being the end of a block."""


def plain(text: str) -> str:
    """The text as it reads, whatever markup or mention it holds."""
    safe = "".join(
        part if _ADDRESS.fullmatch(part) else _unmarked(part)
        for part in _ADDRESS.split(clean(text))
    )
    return _SPECIAL.sub(r"\\<", discord.utils.escape_mentions(safe))


def _unmarked(text: str) -> str:
    """Without markup, in time that grows with the length alone.

    discord.py's `escape_markdown` takes minutes for `[a](` ten thousand times over, and leaves what
    it takes for a link as it is, such as `steam://` with a fence behind it.
    """
    flat = _LEADING.sub(r"\1\\\2", _MARKUP.sub(r"\\\g<0>", text))
    return flat.replace("](", "]\\(")


def moment(at: datetime) -> str:
    """A time in the reader's own zone and language, and how far off it is, as Discord shows it."""
    number = math.ceil(at.timestamp())  # never before it is true
    return f"<t:{number}:F> (<t:{number}:R>)"


def timed(text: str, moments: Mapping[str, datetime]) -> str:
    """The text as it reads, with each of the words that name a time as Discord shows times."""
    for words, at in moments.items():
        before, found, after = text.rpartition(words)
        if found:
            others = {each: moments[each] for each in moments if each != words}
            return timed(before, others) + moment(at) + timed(after, others)
    return plain(text)


def line(text: str, most: int = 200) -> str:
    """The text on one line, safe and no longer than that."""
    flat = one_line(text)
    return plain(flat if len(flat) <= most else f"{flat[: most - 1]}…")


def fenced(text: str, syntax: str = "") -> str:
    """The text in a block of its own, as it was written; `syntax` is a word of ours."""
    return f"```{syntax}\n{unfenced(text)}\n```"


def unfenced(text: str) -> str:
    """The text without anything that would end the block around it."""
    return clean(text).replace("```", f"`{_BLIND}`{_BLIND}`").rstrip("\n")
