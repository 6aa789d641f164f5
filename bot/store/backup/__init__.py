"""A whole database as one file, and back: every row of one moment, whatever goes on meanwhile."""

from bot.store.backup.archive import seekable
from bot.store.backup.copy import dump, load

__all__ = ["dump", "load", "seekable"]
