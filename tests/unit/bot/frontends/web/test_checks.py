"""Tests of checks over the life of a process: what a killed one had done is not done again."""

from datetime import timedelta

import pytest

from bot.domain.access import NOBODY, Viewer
from bot.domain.errors import UserError
from bot.domain.ids import ReleaseId
from bot.domain.release import NewRelease
from bot.frontends.web.checks import KEEP, Stand, checking, own_check
from bot.frontends.web.door import DOOR, Door
from bot.services.publishing.publish import NO_BOARD, publish
from bot.services.publishing.request import WISH, Wish, read
from bot.store.memory import MemoryStore
from tests.doubles.agents import make_door
from tests.doubles.clock import ManualClock
from tests.doubles.place import Place, make_place
from tests.doubles.task_zips import packed

LEASE = timedelta(seconds=30)


@pytest.fixture
async def place(memory_store: MemoryStore, clock: ManualClock) -> Place:
    return await make_place(memory_store, clock)


@pytest.fixture
def door(place: Place) -> Door:
    return make_door(place.store, place.clock)


async def waiting(place: Place, stand: Stand) -> ReleaseId:
    wish = Wish(place.ada, "double", ("CPU",), None, onto=NO_BOARD)
    place_text, wish_text = stand.model_dump_json(), WISH.dump_json(wish).decode()
    return await place.store.releases.add(
        NewRelease(DOOR, place.ada, packed()[2], wish_text, place_text)
    )


async def ended(door: Door, number: ReleaseId) -> str:
    """What is told once it has ended."""
    async with checking(door):
        for _ in range(500):
            note = await door.store.releases.told(DOOR, number)
            if note is not None and note.ended_at is not None:
                break
            await _moment()
    outcome = (await own_check(door, Viewer(NOBODY, sees_all=True), number)).stand.outcome
    assert outcome is not None
    return " ".join(text for text, _ in outcome.lines)


async def _moment() -> None:
    import asyncio  # noqa: PLC0415

    await asyncio.sleep(0.01)


async def test_what_was_published_before_a_kill_is_told_as_published(
    door: Door, place: Place
) -> None:
    number = await waiting(place, Stand(publishing=True))
    wish = Wish(place.ada, "double", ("CPU",), None)
    _, parsed = await read(packed()[2], wish)
    await publish(place.store, place.clock, wish.request(parsed.task))
    assert "double on CPU is published." in await ended(door, number)
    board = await place.store.boards.find("double")
    assert board is not None
    assert len(await place.store.boards.versions(board.id)) == 1


async def test_without_a_runner_nothing_is_published_and_that_is_said(
    door: Door, place: Place
) -> None:
    number = await waiting(place, Stand())
    assert "no runner is here" in await ended(door, number)
    assert await place.store.boards.find("double") is None
    with pytest.raises(UserError, match="no check"):
        await own_check(door, Viewer(await place.person("eve")), number)
    place.clock.advance(KEEP.total_seconds() + 1)
    await ended(door, await waiting(place, Stand()))
    with pytest.raises(UserError, match="no check"):
        await own_check(door, Viewer(place.ada), number)


async def test_a_bug_ends_the_check_with_an_incident(
    door: Door, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> object:
        raise RuntimeError("a defect")

    monkeypatch.setattr("bot.services.publishing.engine.read", broken)
    assert "please report incident" in await ended(door, await waiting(place, Stand()))
