"""What was seen since the process began, in memory."""

from collections import defaultdict
from datetime import datetime

from bot.domain.job import JobState
from bot.domain.tally import REFERENCE, Tally, counted
from bot.ports import Schema
from tests.doubles.memory_store.tables import Tables

_SCHEMA = Schema(0, 0)
"""Nothing to migrate: a store in memory is as new as its code."""


class MemoryOperations:
    """Counts over a list to which every accepted evaluation was added."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def schema(self) -> Schema:
        return _SCHEMA

    async def tallies(self) -> tuple[Tally, ...]:
        judged: dict[tuple[str, str, str], list[float]] = defaultdict(list)
        waited: dict[tuple[str, str, str], list[float]] = defaultdict(list)
        for job, stored in self._tables.tallied:
            mode = REFERENCE if job.of_the_house else job.mode.value
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
