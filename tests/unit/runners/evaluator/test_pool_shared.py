import asyncio

from runners.evaluator.pool import DeduplicatingCache


class Work:
    """Counts how often it was begun, and can be held back."""

    def __init__(self) -> None:
        self.begun = 0
        self.cancelled = 0
        self.gate = asyncio.Event()

    async def do(self) -> int:
        self.begun += 1
        try:
            await asyncio.wait_for(self.gate.wait(), 5)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return self.begun


async def test_one_works_for_all_who_ask_at_once() -> None:
    shared, work = DeduplicatingCache[int](lambda _: True), Work()
    asking = [asyncio.create_task(shared.get("a", work.do, 8)) for _ in range(5)]
    await asyncio.sleep(0)
    work.gate.set()
    found = await asyncio.gather(*asking)
    assert work.begun == 1
    assert found == [(1, False), *[(1, True)] * 4]
    assert await shared.get("a", work.do, 8) == (1, True)


async def test_only_the_latest_are_kept() -> None:
    shared, work = DeduplicatingCache[int](lambda _: True), Work()
    work.gate.set()
    for key in ("a", "b", "a", "c"):
        await shared.get(key, work.do, 2)
    assert work.begun == 3
    assert await shared.get("a", work.do, 2) == (1, True)
    assert await shared.get("b", work.do, 2) == (4, False)


async def test_what_may_not_be_kept_is_done_again() -> None:
    shared, work = DeduplicatingCache[int](lambda value: value > 1), Work()
    work.gate.set()
    assert [(await shared.get("a", work.do, 8))[0] for _ in range(3)] == [1, 2, 2]


async def test_work_goes_on_while_one_still_waits_and_ends_with_the_last() -> None:
    shared, work = DeduplicatingCache[int](lambda _: True), Work()
    first, second = (asyncio.create_task(shared.get("a", work.do, 8)) for _ in range(2))
    await asyncio.sleep(0.01)
    first.cancel()
    await asyncio.wait({first})
    assert work.cancelled == 0
    second.cancel()
    await asyncio.wait({second})
    assert (first.cancelled(), second.cancelled(), work.cancelled) == (True, True, 1)
    work.gate.set()
    assert await shared.get("a", work.do, 8) == (2, False)


async def test_an_error_reaches_all_and_is_not_kept() -> None:
    shared, tries = DeduplicatingCache[int](lambda _: True), iter((True, False))

    async def fails_once() -> int:
        await asyncio.sleep(0)
        if next(tries):
            raise ValueError("once")
        return 7

    asking = [shared.get("a", fails_once, 8) for _ in range(3)]
    found = await asyncio.gather(*asking, return_exceptions=True)
    assert [str(each) for each in found] == ["once"] * 3
    assert await shared.get("a", fails_once, 8) == (7, False)
