"""Tests of the doors that are opened, where a whole process is not needed to see it."""

import asyncio
from pathlib import Path

import pytest

from bot.app.context import OpenPodium, SystemClock
from bot.app.doors import open_doors
from bot.ports import Store
from bot.settings import Settings
from bot.web import app
from tests.doubles.memory_store import MemoryStore


async def test_the_web_door_runs_the_upkeep_of_its_slices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Store] = []
    done = asyncio.Event()

    async def upkeep(store: Store) -> None:
        seen.append(store)
        done.set()

    upkept = [each for each in app.slices() if hasattr(each, "upkeep")]
    assert upkept
    for each in upkept:
        monkeypatch.setattr(each, "upkeep", upkeep)
    clock = SystemClock()
    podium = OpenPodium(MemoryStore(clock), clock, "memory", served=True, shared=False)
    settings = Settings(data_dir=tmp_path).model_copy(update={"http_port": 0})
    async with open_doors(settings, podium, ()), asyncio.timeout(10):
        await done.wait()
    assert seen[0] is podium.store
