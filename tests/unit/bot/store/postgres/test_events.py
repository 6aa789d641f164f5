"""Notices within one process."""

import asyncio

import pytest

from bot.domain.job import Notice, Topic
from bot.store.postgres import events
from bot.store.postgres.events import Subscriptions

READY = Notice(Topic.READY, "CPU")
CANCEL = Notice(Topic.CANCEL, "7")


async def test_each_subscriber_hears_its_own_topics() -> None:
    hub = Subscriptions()
    async with (
        hub.subscribe(frozenset({Topic.READY})) as ready,
        hub.subscribe(frozenset(Topic)) as everything,
    ):
        hub.publish(CANCEL)
        hub.publish(READY)
        assert await anext(ready) == READY
        assert [await anext(everything) for _ in range(2)] == [CANCEL, READY]


async def test_silence_is_told_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "TICK_S", 0.01)
    async with Subscriptions().subscribe(frozenset({Topic.READY})) as notices:
        async with asyncio.timeout(2):
            assert await anext(notices) is None
            assert await anext(notices) is None


async def test_the_notices_of_others_do_not_put_off_the_looking(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(events, "TICK_S", 0.05)
    hub = Subscriptions()
    async with hub.subscribe(frozenset({Topic.READY})) as notices:
        heard = []
        for _ in range(20):
            hub.publish(READY)
            heard.append(await anext(notices))
            await asyncio.sleep(0.01)
    assert None in heard
    assert READY in heard


async def test_a_slow_subscriber_loses_notices_instead_of_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(events, "BACKLOG", 2)
    monkeypatch.setattr(events, "TICK_S", 0.3)
    hub = Subscriptions()
    async with hub.subscribe(frozenset({Topic.READY})) as notices:
        for _ in range(5):
            hub.publish(READY)
        assert [await anext(notices) for _ in range(3)] == [READY, READY, None]


async def test_one_who_left_is_forgotten() -> None:
    hub = Subscriptions()
    async with hub.subscribe(frozenset({Topic.READY})):
        pass
    hub.publish(READY)
    assert hub._queues == {}
