from collections.abc import AsyncIterator

import pytest

from bot.domain.errors import StoreError, UserError
from bot.web import rendering
from bot.web.context import WebContext
from bot.web.rendering import Part, event, live
from tests.doubles.agents import make_door
from tests.doubles.clock import ManualClock
from tests.doubles.memory_store import MemoryStore


@pytest.fixture
def door(
    memory_store: MemoryStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> WebContext:
    monkeypatch.setattr(rendering, "TICK_S", 0)
    return make_door(memory_store, clock)


def telling(door: WebContext, *parts: Part | Exception) -> AsyncIterator[str]:
    left = iter(parts)

    async def part() -> Part:
        found = next(left)
        if isinstance(found, Exception):
            raise found
        return found

    told: AsyncIterator[str] = live(door, part).body_iterator  # type: ignore[assignment]
    return told


def test_whatever_breaks_a_line_stays_in_its_event() -> None:
    assert event("part", "a\r\nb\n\nc") == "event: part\ndata: a\ndata: b\ndata: \ndata: c\n\n"
    assert event("part", "a\nevent: done\ndata: x").count("\nevent:") == 0


async def test_a_part_is_told_when_it_changes_and_the_last_one_ends_it(door: WebContext) -> None:
    told = [each async for each in telling(door, ("a", False), ("a", False), ("b", True))]
    assert told == ["retry: 3000\n\n", event("part", "a"), event("part", "b"), event("done", "")]


async def test_a_database_that_is_away_is_waited_for_and_a_part_that_is_gone_is_the_end(
    door: WebContext,
) -> None:
    gone = UserError("unknown-submission", "gone")
    told = [each async for each in telling(door, ("a", False), StoreError("away"), gone)]
    assert told[1:] == [event("part", "a"), event("done", "")]


async def test_a_door_that_closes_lets_nobody_wait(door: WebContext) -> None:
    door.closing.begun = True
    assert [each async for each in telling(door)] == ["retry: 3000\n\n"]
