"""Counts over everything in memory."""

from collections import Counter, defaultdict
from datetime import UTC, date, datetime

from bot.domain.ids import PersonId
from bot.ports import DayCount
from bot.store.memory.tables import Tables
from runners.contract.verdict import Verdict


class MemoryStatistics:
    """Counts of the rows that there are."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def people(self) -> int:
        return len(self._tables.people)

    async def days(self, since: datetime) -> tuple[DayCount, ...]:
        found: dict[date, list[PersonId]] = defaultdict(list)
        for each in self._tables.submissions.values():
            if each.created_at >= since:
                found[each.created_at.astimezone(UTC).date()].append(each.person)
        return tuple(DayCount(day, len(who), len(set(who))) for day, who in sorted(found.items()))

    async def verdicts(self, since: datetime) -> dict[Verdict, int]:
        stored = self._tables.evaluations.values()
        return dict(Counter(each.evaluation.verdict for each in stored if each.at >= since))
