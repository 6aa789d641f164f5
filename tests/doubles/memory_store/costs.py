"""GPU time and its quotas, in memory."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, date, datetime

from bot.domain.costs import GpuTime, Prices, Quota, QuotaKey, Usage, UsageKind
from bot.domain.ids import PersonId
from bot.domain.job import Job, JobState
from tests.doubles.memory_store.tables import Tables


class MemoryCosts:
    """GPU time, with the quotas that limit it."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    @property
    def prices(self) -> Prices:
        return self._tables.prices

    async def set_quota(self, quota: Quota) -> None:
        self._tables.quotas[quota.key] = quota

    async def drop_quota(self, key: QuotaKey) -> bool:
        return self._tables.quotas.pop(key, None) is not None

    async def quotas(self) -> tuple[Quota, ...]:
        return tuple(sorted(self._tables.quotas.values(), key=_width))

    async def counted(self, since: datetime) -> tuple[GpuTime, ...]:
        return tuple(counted(self._tables, since))

    async def usage(self, since: datetime, person: PersonId | None = None) -> tuple[Usage, ...]:
        people = self._tables.people
        found: dict[tuple[date, str, PersonId, str, UsageKind], list[float]] = defaultdict(list)
        for each in self._tables.gpu_time:
            if each.at >= since and person in {None, each.person}:
                day = each.at.astimezone(UTC).date()
                key = day, each.board_name, each.person, each.gpu, each.kind
                found[key].append(each.seconds)
        return tuple(
            Usage(day, board, person, people[person].name, gpu, kind, len(spent), sum(spent))
            for (day, board, person, gpu, kind), spent in sorted(found.items())
        )


def counted(tables: Tables, since: datetime) -> Iterator[GpuTime]:
    """What counts for quotas."""
    for each in tables.gpu_time:
        if each.at >= since and each.kind.counts:
            yield GpuTime(each.person, each.board, each.gpu, each.seconds)
    for job in tables.jobs.values():
        if job.state is JobState.RUNNING and tables.kind_of(job).counts:
            yield reservation(tables, job)


def reservation(tables: Tables, job: Job) -> GpuTime:
    """What a job may use at most."""
    made = tables.submissions.get(job.submission)
    board = None if made is None else made.board
    return GpuTime(job.person, board, job.gpu, reserved_s=job.limit_s * job.cards)


def _width(quota: Quota) -> tuple[object, ...]:
    key = quota.key
    return key.person or 0, key.board or 0, key.gpu or "", not key.each_person, key.unit
