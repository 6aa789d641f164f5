import asyncio

import pytest

from bot.services.cache import ResponseCache
from tests.doubles.loop_clock import moved


class Making:
    """Makes numbers, each when it is let."""

    def __init__(self) -> None:
        self.made = 0
        self.let = asyncio.Event()
        self.let.set()

    async def __call__(self) -> int:
        await self.let.wait()
        self.made += 1
        return self.made


async def test_many_at_once_have_one_value_made() -> None:
    kept, making = ResponseCache(), Making()
    assert await asyncio.gather(*(kept.get("a", 60, making) for _ in range(50))) == [1] * 50
    assert await kept.get("b", 60, making) == 2


async def test_an_old_value_is_made_anew() -> None:
    kept, making = ResponseCache(), Making()
    assert [await kept.get("a", 0, making) for _ in range(3)] == [1, 2, 3]


async def test_while_one_makes_it_anew_the_others_get_the_one_there_was() -> None:
    kept, making = ResponseCache(), Making()
    with moved() as clock:
        await kept.get("a", 60, making)
        await clock.move(61)
        making.let.clear()
        maker = asyncio.create_task(kept.get("a", 60, making))
        await asyncio.sleep(0)
        assert await kept.get("a", 60, making) == 1
        making.let.set()
        assert await maker == 2


async def test_what_fails_is_not_kept_and_who_goes_away_leaves_it_to_the_next() -> None:
    kept, making = ResponseCache(), Making()

    async def fails() -> int:
        raise LookupError

    with pytest.raises(LookupError):
        await kept.get("a", 60, fails)
    making.let.clear()
    gone = asyncio.create_task(kept.get("a", 60, making))
    waits = asyncio.create_task(kept.get("a", 60, making))
    await asyncio.sleep(0)
    gone.cancel()
    making.let.set()
    assert await waits == 1


async def test_no_more_than_so_many_are_kept() -> None:
    kept, making = ResponseCache(max_entries=2), Making()
    for key in "abc":
        await kept.get(key, 60, making)
    assert await kept.get("c", 60, making) == 3
    assert await kept.get("a", 60, making) == 4


async def test_nobody_waits_longer_than_that_for_what_does_not_give_up_when_it_is_told_to() -> None:
    kept, making = ResponseCache(), Making()
    given_up = asyncio.Event()

    async def stubborn() -> int:
        never: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        try:
            return await never
        except asyncio.CancelledError:
            await making.let.wait()
            given_up.set()
            raise

    making.let.clear()
    for _ in range(2):
        with pytest.raises(TimeoutError, match="no answer within"):
            await asyncio.wait_for(kept.get_within("a", 60, 0.01, stubborn), 5)
    making.let.set()
    assert await kept.get_within("a", 60, 5, making) == 1
    assert given_up.is_set()


async def test_what_fails_within_its_time_fails_as_it_does() -> None:
    async def failing() -> int:
        raise KeyError("a")

    with pytest.raises(KeyError):
        await ResponseCache().get_within("a", 60, 5, failing)
