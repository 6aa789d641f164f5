"""The store in memory: the twin of the Postgres store for unit tests and one-shot judging."""

from bot.store.memory.store import MemoryStore

__all__ = ["MemoryStore"]
