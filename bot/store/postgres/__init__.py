"""The store in Postgres, over asyncpg."""

from bot.store.postgres.database import reach
from bot.store.postgres.store import PostgresStore, open_store

__all__ = ["PostgresStore", "open_store", "reach"]
