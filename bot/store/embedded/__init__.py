"""A Postgres of our own, from the binaries of a wheel: nothing to install or to configure."""

from bot.store.embedded.database import Database, open_database

__all__ = ["Database", "open_database"]
