"""Counts over everything in memory."""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import UTC, date, datetime

from bot.domain.accounts import SYSTEM_IDENTITY
from bot.domain.ids import BoardId, PersonId, is_system_submission
from bot.domain.job import JobState
from bot.domain.records import BUCKETS_S, CONFIRMATION, REFERENCE, DayCount, Schema, Tally
from runners.contract.verdict import Verdict
from tests.doubles.memory_store.tables import Tables


class MemoryStatistics:
    """Counts of the rows that there are."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def people(self) -> int:
        return sum(each.identity != SYSTEM_IDENTITY for each in self._tables.people.values())

    async def participants(self) -> dict[BoardId, int]:
        made = self._tables.submissions.values()
        own = {
            (each.board, each.person) for each in made if each.id not in self._tables.judged_again
        }
        return dict(Counter(board for board, _ in own))

    async def days(self, since: datetime) -> tuple[DayCount, ...]:
        found: dict[date, list[PersonId]] = defaultdict(list)
        for each in self._tables.submissions.values():
            if each.created_at >= since and not is_system_submission(each.id):
                found[each.created_at.astimezone(UTC).date()].append(each.person)
        return tuple(DayCount(day, len(who), len(set(who))) for day, who in sorted(found.items()))

    async def verdicts(self, since: datetime) -> dict[Verdict, int]:
        jobs = self._tables.jobs
        everything = self._tables.evaluations.values()
        stored = [
            each for each in everything if not is_system_submission(jobs[each.job].submission)
        ]
        return dict(Counter(each.evaluation.verdict for each in stored if each.at >= since))


_SCHEMA = Schema(0, 0)
"""There is nothing to migrate, because a store in memory is always as new as its code."""


class MemoryOperations:
    """Counts over a list of all accepted evaluations."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def schema(self) -> Schema:
        return _SCHEMA

    async def tallies(self) -> tuple[Tally, ...]:
        judged: dict[tuple[str, str, str], list[float]] = defaultdict(list)
        waited: dict[tuple[str, str, str], list[float]] = defaultdict(list)
        for job, stored in self._tables.tallied:
            mode = REFERENCE if is_system_submission(job.submission) else job.mode.value
            mode = CONFIRMATION if job.submission in self._tables.confirmation_runs else mode
            key = job.gpu, mode, stored.evaluation.verdict.value
            began = job.started_at or job.created_at
            judged[key].append(stored.evaluation.wall_s)
            waited[key].append(max(0.0, (began - job.created_at).total_seconds()))
        return tuple(
            Tally(
                *key,
                evaluations=len(judged[key]),
                judged_s=sum(judged[key]),
                waited_s=sum(waited[key]),
                judged=counted(judged[key]),
                waited=counted(waited[key]),
            )
            for key in sorted(judged)
        )

    async def lost_leases(self) -> dict[str, int]:
        return dict(self._tables.lost_leases)

    async def waiting_since(self) -> dict[str, datetime]:
        now, found = self._tables.clock.now(), dict[str, datetime]()
        for job in self._tables.jobs.values():
            if job.state is JobState.QUEUED and job.run_at <= now:
                found[job.gpu] = min(job.created_at, found.get(job.gpu, job.created_at))
        return found


def bucket_of(seconds: float) -> int:
    """The index of the bucket of a duration."""
    return bisect_right(BUCKETS_S, seconds)


def counted(seconds: Iterable[float]) -> tuple[int, ...]:
    """The number of these durations in each bucket."""
    counts = [0] * (len(BUCKETS_S) + 1)
    for each in seconds:
        counts[bucket_of(each)] += 1
    return tuple(counts)
