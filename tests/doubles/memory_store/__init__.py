"""The store in memory: the same roles as the Postgres store, for unit tests."""

from tests.doubles.memory_store.store import MemoryStore

__all__ = ["MemoryStore"]
