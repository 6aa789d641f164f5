from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from bot.domain.ids import JobId, PersonId, SubmissionId
from bot.domain.records import FailedRun
from bot.store.postgres.results import JobCache


def kept(name: str) -> FailedRun:
    """What is read of a job."""
    submitted_at = datetime(2027, 1, 4, tzinfo=UTC)
    return FailedRun(SubmissionId(1), PersonId(1), name, "CPU", "crashed", None, "", submitted_at)


class Rows:
    """Rows by job, and which of them were asked for."""

    def __init__(self) -> None:
        self.names = {JobId(1): "Ada", JobId(2): "Bob", JobId(3): "Cid"}
        self.asked: list[list[int]] = []

    async def read(self, jobs: Sequence[JobId]) -> dict[JobId, FailedRun]:
        self.asked.append(sorted(jobs))
        return {each: kept(self.names[each]) for each in jobs if each in self.names}

    def wanted(self, *jobs: int) -> dict[JobId, str]:
        return {JobId(each): self.names.get(JobId(each), "?") for each in jobs}


@pytest.fixture
def rows() -> Rows:
    return Rows()


async def test_what_is_known_is_not_read_again(rows: Rows) -> None:
    remembered = JobCache(rows.read)
    assert await remembered.of(rows.wanted(1, 2)) == {1: kept("Ada"), 2: kept("Bob")}
    assert await remembered.of(rows.wanted(2, 3)) == {2: kept("Bob"), 3: kept("Cid")}
    assert await remembered.of(rows.wanted(1)) == {1: kept("Ada")}
    assert rows.asked == [[1, 2], [3]]


async def test_another_name_is_seen_and_what_was_deleted_is_left_out(rows: Rows) -> None:
    remembered = JobCache(rows.read)
    await remembered.of(rows.wanted(1, 2))
    rows.names[JobId(1)] = "Ada L."
    assert await remembered.of(rows.wanted(1, 2)) == {1: kept("Ada L."), 2: kept("Bob")}
    del rows.names[JobId(2)]
    assert await remembered.of(rows.wanted(1, 2)) == {1: kept("Ada L.")}
    assert rows.asked == [[1, 2], [1], [2]]


async def test_beyond_the_most_those_wanted_last_are_known(rows: Rows) -> None:
    remembered = JobCache(rows.read, most=2)
    await remembered.of(rows.wanted(1, 2))
    assert await remembered.of(rows.wanted(2, 3)) == {2: kept("Bob"), 3: kept("Cid")}
    await remembered.of(rows.wanted(1))
    assert rows.asked == [[1, 2], [3], [1]]


async def test_a_transaction_knows_what_is_committed_and_adds_nothing_to_it(rows: Rows) -> None:
    committed = JobCache(rows.read)
    await committed.of(rows.wanted(1, 2))
    inner = JobCache(rows.read)
    inner.committed = committed
    rows.names[JobId(2)] = "Bob B."
    found = await inner.of(rows.wanted(1, 2, 3))
    assert found == {1: kept("Ada"), 2: kept("Bob B."), 3: kept("Cid")}
    del rows.names[JobId(3)]  # the transaction is rolled back
    assert await committed.of(rows.wanted(1, 3)) == {1: kept("Ada")}
    assert rows.asked == [[1, 2], [2, 3], [3]]
