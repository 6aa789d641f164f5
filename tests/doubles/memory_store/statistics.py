"""Counts over everything in memory."""

from collections import Counter, defaultdict
from datetime import UTC, date, datetime

from bot.domain.ids import BoardId, PersonId, is_the_houses
from bot.domain.person import HOUSE
from bot.ports import DayCount, Usage
from runners.contract.verdict import Verdict
from tests.doubles.memory_store.tables import Tables


class MemoryStatistics:
    """Counts of the rows that there are."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def people(self) -> int:
        return sum(each.identity != HOUSE for each in self._tables.people.values())

    async def participants(self) -> dict[BoardId, int]:
        made = self._tables.submissions.values()
        own = {
            (each.board, each.person) for each in made if each.id not in self._tables.judged_again
        }
        return dict(Counter(board for board, _ in own))

    async def days(self, since: datetime) -> tuple[DayCount, ...]:
        found: dict[date, list[PersonId]] = defaultdict(list)
        for each in self._tables.submissions.values():
            if each.created_at >= since and not is_the_houses(each.id):
                found[each.created_at.astimezone(UTC).date()].append(each.person)
        return tuple(DayCount(day, len(who), len(set(who))) for day, who in sorted(found.items()))

    async def verdicts(self, since: datetime) -> dict[Verdict, int]:
        jobs = self._tables.jobs
        everything = self._tables.evaluations.values()
        stored = [each for each in everything if not jobs[each.job].of_the_house]
        return dict(Counter(each.evaluation.verdict for each in stored if each.at >= since))

    async def usage(self, since: datetime) -> tuple[Usage, ...]:
        tables = self._tables
        found: dict[tuple[str, PersonId, str], list[float]] = defaultdict(list)
        for each in tables.evaluations.values():
            if each.at >= since:
                made = tables.submissions[tables.jobs[each.job].submission]
                key = (tables.boards[made.board].name, made.person, each.gpu)
                found[key].append(each.evaluation.gpu_s)
        return tuple(
            Usage(board, tables.people[person].name, gpu, len(spent), sum(spent))
            for (board, person, gpu), spent in sorted(found.items())
        )
