"""Saves a whole database as one file and restores it: a consistent snapshot, even while in use."""

from bot.store.backup.archive import seekable
from bot.store.backup.copy import dump, load

__all__ = ["dump", "load", "seekable"]
