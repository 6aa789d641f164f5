"""Releases do not get in each other's way, nor do the two loops that take and keep them."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from unittest.mock import AsyncMock, Mock

import discord
import pytest

from bot.domain.ids import ReleaseId
from bot.domain.release import NewRelease, Release
from bot.frontends.discord.door import DOOR, Door
from bot.frontends.discord.proving import proving
from bot.frontends.discord.publication_thread.poster import Proof
from tests.doubles.place import Place


async def test_a_release_that_cannot_be_read_is_given_up_and_the_others_are_taken(
    place: Place,
) -> None:
    client = Mock(spec=discord.Client, wait_until_ready=AsyncMock())
    store = place.store
    for _ in range(3):
        await store.releases.add(NewRelease(DOOR, place.ada, b"", "no wish", "no stand"))
    async with proving(client, Door(store, place.clock)):
        for _ in range(300):
            place.clock.advance(1)  # a lease that nobody prolongs would end
            await asyncio.sleep(0.01)
    assert await store.releases.claim(DOOR, "two", timedelta(0)) == ()


async def test_what_is_taken_while_leases_are_prolonged_is_not_stopped(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    releases = place.store.releases
    asked, begun, stopped = asyncio.Event(), asyncio.Event(), asyncio.Event()
    claim: Callable[..., object] = releases.claim
    keep = releases.keep

    async def claim_afterwards(*given: object) -> tuple[Release, ...]:
        await asked.wait()
        return await claim(*given)  # type: ignore[misc, no-any-return]

    async def answer_late(owner: str, lease: timedelta) -> tuple[ReleaseId, ...]:
        kept = await keep(owner, lease)
        asked.set()
        await begun.wait()
        return kept

    async def run() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    monkeypatch.setattr(releases, "claim", claim_afterwards)
    monkeypatch.setattr(releases, "keep", answer_late)
    monkeypatch.setattr(Proof, "of", Mock(return_value=Mock(spec=Proof, run=run)))
    await releases.add(NewRelease(DOOR, place.ada, b"", "a wish", "a stand"))
    client = Mock(spec=discord.Client, wait_until_ready=AsyncMock())
    async with proving(client, Door(place.store, place.clock)):
        await asyncio.wait_for(begun.wait(), 5)
        await asyncio.sleep(0.05)
        assert not stopped.is_set()


async def test_what_is_held_is_free_after_the_doors_lease(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = asyncio.Event()

    async def run() -> None:
        held.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(Proof, "of", Mock(return_value=Mock(spec=Proof, run=run)))
    client = Mock(spec=discord.Client, wait_until_ready=AsyncMock())
    releases = place.store.releases
    await releases.add(NewRelease(DOOR, place.ada, b"", "a wish", "a stand"))
    lease = timedelta(seconds=60)
    async with proving(client, Door(place.store, place.clock, lease=lease)):
        await held.wait()
        place.clock.advance(59)
        assert await releases.claim(DOOR, "two", lease) == ()
        place.clock.advance(2)
        assert len(await releases.claim(DOOR, "two", lease)) == 1
