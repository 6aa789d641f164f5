"""How the connections end."""

import asyncio
from typing import Any

import pytest

from bot.store.postgres import database


class Pool:
    """Connections of which one runs a query that ends, or never does."""

    def __init__(self, *, ends: bool) -> None:
        self.done: list[str] = []
        self._ends = ends

    async def close(self) -> None:
        if not self._ends:
            await asyncio.Event().wait()
        self.done.append("closed")

    def terminate(self) -> None:
        self.done.append("terminated")


@pytest.mark.parametrize(("ends", "done"), [(True, "closed"), (False, "terminated")])
async def test_a_query_that_never_ends_does_not_keep_the_connections_open(
    monkeypatch: pytest.MonkeyPatch, done: str, *, ends: bool
) -> None:
    monkeypatch.setattr(database, "CLOSE_S", 0.05)
    pool: Any = Pool(ends=ends)
    await database._close(pool)
    assert pool.done == [done]
