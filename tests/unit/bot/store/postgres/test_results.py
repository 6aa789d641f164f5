from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from bot.domain.ids import JobId
from bot.store.postgres.results import Remembered


@dataclass(frozen=True)
class Kept:
    """What is read of a job."""

    person_name: str


class Rows:
    """Rows by job, and which of them were asked for."""

    def __init__(self) -> None:
        self.names = {JobId(1): "Ada", JobId(2): "Bob", JobId(3): "Cid"}
        self.asked: list[list[int]] = []

    async def read(self, jobs: Sequence[JobId]) -> dict[JobId, Kept]:
        self.asked.append(sorted(jobs))
        return {each: Kept(self.names[each]) for each in jobs if each in self.names}

    def wanted(self, *jobs: int) -> dict[JobId, str]:
        return {JobId(each): self.names.get(JobId(each), "?") for each in jobs}


@pytest.fixture
def rows() -> Rows:
    return Rows()


async def test_what_is_known_is_not_read_again(rows: Rows) -> None:
    remembered = Remembered(rows.read)
    assert await remembered.of(rows.wanted(1, 2)) == {1: Kept("Ada"), 2: Kept("Bob")}
    assert await remembered.of(rows.wanted(2, 3)) == {2: Kept("Bob"), 3: Kept("Cid")}
    assert await remembered.of(rows.wanted(1)) == {1: Kept("Ada")}
    assert rows.asked == [[1, 2], [3]]


async def test_another_name_is_seen_and_what_was_deleted_is_left_out(rows: Rows) -> None:
    remembered = Remembered(rows.read)
    await remembered.of(rows.wanted(1, 2))
    rows.names[JobId(1)] = "Ada L."
    assert await remembered.of(rows.wanted(1, 2)) == {1: Kept("Ada L."), 2: Kept("Bob")}
    del rows.names[JobId(2)]
    assert await remembered.of(rows.wanted(1, 2)) == {1: Kept("Ada L.")}
    assert rows.asked == [[1, 2], [1], [2]]


async def test_beyond_the_most_those_wanted_last_are_known(rows: Rows) -> None:
    remembered = Remembered(rows.read, most=2)
    await remembered.of(rows.wanted(1, 2))
    assert await remembered.of(rows.wanted(2, 3)) == {2: Kept("Bob"), 3: Kept("Cid")}
    await remembered.of(rows.wanted(1))
    assert rows.asked == [[1, 2], [3], [1]]
