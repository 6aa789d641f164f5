"""Makes other people's text safe to show on Discord: no markup, no mention, no broken fence."""

import re

import discord

MOST = 2000
"""Characters in a message."""
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[^\n\[])")
_SPECIAL = re.compile(r"<(?=[@#/:]|a:|t:|id:)")
"""Begins a mention, a command, an emoji, a time or a link into the server."""
_BLIND = "\u200b"
"""Takes no room, and keeps three backticks from being the end of a block."""


def clean(text: str) -> str:
    """The text without terminal escapes, controls and direction marks; lines and tabs stay."""
    unified = _ESCAPES.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROLS.sub("", unified)


def plain(text: str) -> str:
    """The text as it reads, whatever markup or mention it holds."""
    safe = discord.utils.escape_mentions(discord.utils.escape_markdown(clean(text)))
    return _SPECIAL.sub(r"\\<", safe)


def line(text: str, most: int = 200) -> str:
    """The text on one line, safe and no longer than that."""
    flat = " ".join(clean(text).split())
    return plain(flat if len(flat) <= most else f"{flat[: most - 1]}…")


def fenced(text: str) -> str:
    """The text in a block of its own, as it was written."""
    return f"```\n{unfenced(text)}\n```"


def unfenced(text: str) -> str:
    """The text without anything that would end the block around it."""
    return clean(text).replace("```", f"`{_BLIND}`{_BLIND}`").rstrip("\n")
