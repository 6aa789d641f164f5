"""Tests of what is made by one and given to many."""

import asyncio

import pytest

from bot.services.cache import SharedCache, always


class Making:
    """Makes versions of an answer when it is let; each counts."""

    def __init__(self) -> None:
        self.made = 0
        self.let = asyncio.Event()
        self.let.set()
        self.latest = SharedCache[tuple[int, str]](max_entries=2)

    async def get(self, key: str, version: int, lag_s: float = 60) -> str:
        async def make() -> tuple[int, str]:
            await self.let.wait()
            self.made += 1
            return version, f"{key}{self.made}"

        def current(it: tuple[int, str], _: float) -> bool:
            return it[0] == version

        return (await self.latest.get(key, make, current=current, lag_s=lag_s))[1]


@pytest.fixture
def making() -> Making:
    return Making()


async def test_a_crowd_has_each_version_made_once(making: Making) -> None:
    assert await asyncio.gather(*(making.get("a", 1) for _ in range(20))) == ["a1"] * 20
    assert await making.get("a", 1) == "a1"
    assert await making.get("a", 2) == "a2"
    assert await making.get("b", 2) == "b3"


async def test_while_one_makes_it_anew_the_others_get_the_one_before(making: Making) -> None:
    await making.get("a", 1)
    making.let.clear()
    first = asyncio.create_task(making.get("a", 2))
    await asyncio.sleep(0)
    assert await making.get("a", 2) == "a1"
    making.let.set()
    assert await first == "a2"


async def test_what_was_not_current_for_too_long_is_given_to_nobody(making: Making) -> None:
    await making.get("a", 1)
    making.let.clear()
    both = [asyncio.create_task(making.get("a", 2, lag_s=0.0)) for _ in range(2)]
    await asyncio.sleep(0.01)
    making.let.set()
    assert await asyncio.gather(*both) == ["a2", "a2"]


async def test_who_finds_it_current_lets_it_be_given_for_longer(making: Making) -> None:
    await making.get("a", 1)
    await asyncio.sleep(0.06)
    await making.get("a", 1)
    making.let.clear()
    first = asyncio.create_task(making.get("a", 2))
    await asyncio.sleep(0)
    assert await making.get("a", 2, lag_s=0.05) == "a1"
    making.let.set()
    await first


async def test_what_fails_is_not_kept(making: Making) -> None:
    async def fails() -> tuple[int, str]:
        raise LookupError

    with pytest.raises(LookupError):
        await making.latest.get("a", fails, current=always, lag_s=60)
    assert making.latest.last("a") is None
    assert await making.get("a", 1) == "a1"
    with pytest.raises(LookupError):
        await making.latest.get("a", fails, current=lambda *_: False, lag_s=60)
    assert making.latest.last("a") == (1, "a1")


async def test_only_so_many_are_kept_and_those_asked_for_last(making: Making) -> None:
    for key in "abac":
        await making.get(key, 1)
    assert [making.latest.last(key) is not None for key in "abc"] == [True, False, True]
