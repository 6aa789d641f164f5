"""Tests of what the door does for its slices: their routes, and their upkeep."""

import asyncio
from types import ModuleType

import pytest

from bot.domain.errors import StoreError
from bot.ports import Store
from bot.web import app
from bot.web.app import maintaining, slices
from tests.doubles.memory_store import MemoryStore


def make_slice(upkeep: object) -> ModuleType:
    found = ModuleType("routes")
    vars(found)["upkeep"] = upkeep
    return found


def test_a_slice_brings_its_routes() -> None:
    assert all(each.router.routes for each in slices())


async def test_an_upkeep_is_run_again_after_the_store_was_away(
    memory_store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[Store] = []
    twice = asyncio.Event()

    async def upkeep(store: Store) -> None:
        runs.append(store)
        if len(runs) == 1:
            raise StoreError("the database is away")
        twice.set()

    of_one = (ModuleType("without_upkeep"), make_slice(upkeep))
    monkeypatch.setattr(app, "slices", lambda: of_one)
    async with maintaining(memory_store, every_s=0.01), asyncio.timeout(10):
        await twice.wait()
    assert set(map(id, runs)) == {id(memory_store)}
