"""Files for spreadsheets, whose cells anybody may have written."""

import gzip

from bot.reports.blocks import Attachment

_LARGE = 8 << 20
"""Larger files are compressed: doors refuse very large ones."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def inert(value: object) -> object:
    """The value, kept from being read as a formula: names and files come from anybody."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def as_file(name: str, text: str) -> Attachment:
    """The text under this name, compressed where it is large."""
    data = text.encode()
    if len(data) <= _LARGE:
        return Attachment(name, data)
    return Attachment(f"{name}.gz", gzip.compress(data, mtime=0))
