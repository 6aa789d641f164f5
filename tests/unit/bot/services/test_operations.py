"""Tests of what is told of each part of a running Podium."""

from datetime import timedelta

import pytest

from bot.domain.errors import StoreError
from bot.domain.records import Schema
from bot.ports.outside import ServiceConnection
from bot.services.operations import ComponentHealth, State, readiness
from runners.contract.runner import OutOfService
from tests.doubles.factories import make_capabilities
from tests.doubles.memory_store import MemoryStore

LEASE = timedelta(seconds=30)


async def part(store: MemoryStore, name: str, *, has_runners: bool = True) -> ComponentHealth:
    return {each.name: each for each in await readiness(store, has_runners=has_runners)}[name]


async def test_a_podium_whose_dispatcher_lives_is_ready(memory_store: MemoryStore) -> None:
    await memory_store.workers.announce("w", ["CPU"], LEASE)
    found = await readiness(
        memory_store, has_runners=True, connections=[ServiceConnection("discord", lambda: 0.1)]
    )
    assert [(each.name, each.state) for each in found] == [
        ("database", State.READY), ("migrations", State.READY),
        ("judging", State.READY), ("discord", State.READY),
    ]  # fmt: skip


async def test_a_dispatcher_that_gives_no_sign_of_life_is_a_failure(
    memory_store: MemoryStore,
) -> None:
    assert (await part(memory_store, "judging")).state is State.FAILED


async def test_a_podium_that_leaves_judging_to_others_waits_for_them(
    memory_store: MemoryStore,
) -> None:
    assert (await part(memory_store, "judging", has_runners=False)).state is State.WAITING
    await memory_store.workers.announce("w", None, LEASE)
    assert (await part(memory_store, "judging", has_runners=False)).state is State.WAITING
    await memory_store.workers.announce("w", [], LEASE)
    assert (await part(memory_store, "judging", has_runners=False)).state is State.WAITING


async def test_runners_of_its_own_of_which_none_can_judge_are_a_failure(
    memory_store: MemoryStore,
) -> None:
    await memory_store.workers.announce("w", None, LEASE)
    assert (await part(memory_store, "judging")).state is State.WAITING
    await memory_store.workers.announce("w", [], LEASE)
    found = await part(memory_store, "judging")
    assert (found.state, "no runner offers a slot" in found.detail) == (State.FAILED, True)
    unfit = OutOfService(gpu="H100", card="GPU-0123", why="memory at 10.0.0.5 is broken")
    offer = make_capabilities().model_copy(update={"out_of_service": (unfit, unfit)})
    for gpus, state in (([], State.FAILED), (["L4"], State.READY)):
        await memory_store.workers.announce("w", gpus, LEASE, {"local": offer})
        found = await part(memory_store, "judging")
        words = "cards out of service: 2 x H100; see `podium runners`"
        assert (found.state, found.detail[: len(words)]) == (state, words)
        assert "10.0.0.5" not in found.detail


async def test_a_pause_is_no_failure_and_says_why(memory_store: MemoryStore) -> None:
    await memory_store.workers.announce("w", ["CPU", "H100"], LEASE)
    await memory_store.moderation.pause_gpu("CPU", "new driver")
    assert (await part(memory_store, "judging")).state is State.READY
    await memory_store.moderation.pause_gpu("H100", "new driver")
    assert (await part(memory_store, "judging")).state is State.PAUSED
    await memory_store.moderation.pause("we move house")
    found = await part(memory_store, "judging")
    assert (found.state, "we move house" in found.detail) == (State.PAUSED, True)


@pytest.mark.parametrize(("present", "words"), [(1, "podium migrate"), (3, "upgrade")])
async def test_a_database_of_another_age_is_named(
    memory_store: MemoryStore, monkeypatch: pytest.MonkeyPatch, present: int, words: str
) -> None:
    async def schema() -> Schema:
        return Schema(present, 2)

    monkeypatch.setattr(memory_store.operations, "schema", schema)
    found = await part(memory_store, "migrations")
    assert found.state is State.FAILED
    assert words in found.detail


async def test_a_database_that_is_away_is_named_without_its_address(
    memory_store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def schema() -> Schema:
        raise StoreError("no route to 10.0.0.5")

    monkeypatch.setattr(memory_store.operations, "schema", schema)
    [database, discord] = await readiness(
        memory_store, has_runners=True, connections=[ServiceConnection("discord")]
    )
    assert (database.name, database.state) == ("database", State.FAILED)
    assert "10.0.0.5" not in database.detail
    assert discord.state is State.FAILED
