"""Tests of answers that are written once for each change."""

import asyncio

import pytest

from bot.frontends.web import written
from bot.frontends.web.written import Written


class Writer:
    """Writes what it is let; counts."""

    def __init__(self) -> None:
        self.wrote = 0
        self.let = asyncio.Event()
        self.let.set()

    async def __call__(self) -> str:
        await self.let.wait()
        self.wrote += 1
        return f"answer {self.wrote}"


async def test_a_crowd_has_one_version_written_once() -> None:
    kept, writer = Written[str](), Writer()
    assert await asyncio.gather(*(kept.get("a", 1, writer) for _ in range(20))) == ["answer 1"] * 20
    assert await kept.get("a", 1, writer) == "answer 1"
    assert await kept.get("a", 2, writer) == "answer 2"
    assert await kept.get("b", 2, writer) == "answer 3"


async def test_while_one_has_it_written_anew_the_others_get_the_one_before() -> None:
    kept, writer = Written[str](), Writer()
    await kept.get("a", 1, writer)
    writer.let.clear()
    first = asyncio.create_task(kept.get("a", 2, writer))
    await asyncio.sleep(0)
    assert await kept.get("a", 2, writer) == "answer 1"
    writer.let.set()
    assert await first == "answer 2"


async def test_an_answer_that_is_too_old_is_given_to_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(written, "OLDEST_S", 0.0)
    kept, writer = Written[str](), Writer()
    await kept.get("a", 1, writer)
    writer.let.clear()
    both = [asyncio.create_task(kept.get("a", 2, writer)) for _ in range(2)]
    await asyncio.sleep(0.01)
    writer.let.set()
    assert await asyncio.gather(*both) == ["answer 2", "answer 2"]


async def test_what_fails_is_not_kept_and_no_more_than_so_many_are() -> None:
    kept, writer = Written[str](most=1), Writer()

    async def fails() -> str:
        raise LookupError

    with pytest.raises(LookupError):
        await kept.get("a", 1, fails)
    assert await kept.get("a", 1, writer) == "answer 1"
    assert await kept.get("b", 1, writer) == "answer 2"
    assert await kept.get("a", 1, writer) == "answer 3"
