"""Tests of what is remembered of a leaderboard."""

import asyncio

import pytest

from bot.services import standings
from bot.services.standings import leaderboard, task_version
from runners.contract.verdict import Stage, Verdict
from tests.doubles.clock import ManualClock
from tests.doubles.memory_store import MemoryStore
from tests.doubles.place import Place, make_place


@pytest.fixture
async def place(memory_store: MemoryStore, clock: ManualClock) -> Place:
    return await make_place(memory_store, clock)


class Counting:
    """The revision of a leaderboard as Postgres counts them, and how often the rest is read."""

    def __init__(self, store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
        self.revision = 1
        self.read = 0
        self._entrants = store.results.entrants
        monkeypatch.setattr(store.results, "revision", self._revision)
        monkeypatch.setattr(store.results, "entrants", self._reading)

    async def _revision(self, *_: object) -> int:
        return self.revision

    async def _reading(self, *place: object) -> object:
        self.read += 1
        await asyncio.sleep(0)
        return await self._entrants(*place)  # type: ignore[arg-type]


async def test_a_crowd_reads_it_once_until_it_revision(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    counting, at = Counting(place.store, monkeypatch), (place.board.task_version, "CPU")
    found = await asyncio.gather(*(leaderboard(place.store, *at) for _ in range(20)))
    assert (counting.read, found[0].entries) == (1, ())
    assert all(each is found[0] for each in found)
    await place.judged(await place.submit())
    counting.revision += 1
    found = await asyncio.gather(*(leaderboard(place.store, *at) for _ in range(20)))
    assert counting.read == 2
    assert [each.rank for each in found[0].entries] == [1]
    assert all(each.entries in {(), found[0].entries} for each in found)
    assert (await leaderboard(place.store, *at)).entries == found[0].entries


async def test_a_reading_that_takes_long_is_waited_for(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standings, "LAG_S", 0.0)
    counting, at = Counting(place.store, monkeypatch), (place.board.task_version, "CPU")
    await leaderboard(place.store, *at)
    await place.judged(await place.submit())
    counting.revision += 1
    found = await asyncio.gather(*(leaderboard(place.store, *at) for _ in range(5)))
    assert (counting.read, {len(each.entries) for each in found}) == (2, {1})


async def test_a_large_one_rests_but_not_for_who_wants_the_newest(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standings, "LARGE_ENTRIES", 1)
    counting, at = Counting(place.store, monkeypatch), (place.board.task_version, "CPU")
    assert not (await leaderboard(place.store, *at)).entries
    await place.judged(await place.submit())
    counting.revision = 2
    assert (await leaderboard(place.store, *at)).revision == 2
    counting.revision = 3
    assert (await leaderboard(place.store, *at)).revision == 2
    assert (await leaderboard(place.store, *at, newest=True)).revision == 3
    counting.revision = 4
    monkeypatch.setattr(standings, "LARGE_REUSE_S", 0.0)
    assert (await leaderboard(place.store, *at)).revision == 4


async def test_the_newest_is_waited_for_also_while_another_reads_it(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    counting, at = Counting(place.store, monkeypatch), (place.board.task_version, "CPU")
    await leaderboard(place.store, *at)
    await place.judged(await place.submit())
    counting.revision += 1
    found = await asyncio.gather(*(leaderboard(place.store, *at, newest=True) for _ in range(5)))
    assert (counting.read, {len(each.entries) for each in found}) == (2, {1})


async def test_what_fails_is_read_again(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    counting, at = Counting(place.store, monkeypatch), (place.board.task_version, "CPU")
    with monkeypatch.context() as broken:
        broken.setattr(place.store.references, "of", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            await leaderboard(place.store, *at)
    assert (await leaderboard(place.store, *at)).revision == counting.revision


async def test_a_refusals_words_are_worked_out_once(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    counting, at = Counting(place.store, monkeypatch), (place.board.task_version, "CPU")
    submission = await place.submit()
    await place.judged(submission, verdict=Verdict.CRASHED, stage=Stage.TIMING, message="secret")
    first = await leaderboard(place.store, *at)
    assert [(each.submission, "secret" in each.message) for each in first.refused] == [
        (submission.id, False)
    ]
    monkeypatch.setattr(place.store.results, "evaluations", None)
    counting.revision += 1
    assert (await leaderboard(place.store, *at)).refused == first.refused


async def test_who_was_refused_is_shown_under_a_new_name_without_a_new_run(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    counting, at = Counting(place.store, monkeypatch), (place.board.task_version, "CPU")
    await place.judged(await place.submit(), verdict=Verdict.CRASHED, stage=Stage.TIMING)
    (before,) = (await leaderboard(place.store, *at)).refused
    await place.store.people.ensure("local:ada", "Ada Lovelace")
    counting.revision += 1
    (after,) = (await leaderboard(place.store, *at)).refused
    assert (before.person_name, after.person_name) == ("ada", "Ada Lovelace")
    assert (after.submission, after.message) == (before.submission, before.message)


async def test_only_so_many_are_remembered(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standings, "MAX_CACHED", 2)
    counting, version = Counting(place.store, monkeypatch), place.board.task_version
    for gpu in ("a", "b", "c", "c", "a"):
        await leaderboard(place.store, version, gpu)
    assert counting.read == 4


async def test_a_task_version_is_read_once(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    found = await task_version(place.store, place.board.task_version)
    monkeypatch.setattr(place.store.boards, "version", None)
    assert await task_version(place.store, place.board.task_version) is found
