"""An embedded Postgres, from the binaries of a wheel: nothing to install or configure."""

from bot.store.embedded.database import EmbeddedDatabase, open_database

__all__ = ["EmbeddedDatabase", "open_database"]
