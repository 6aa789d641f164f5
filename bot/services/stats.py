"""Tells what goes on in an installation: people, submissions a day, verdicts, the queue."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from bot.ports import Clock, DayCount, Store, Usage
from runners.contract.verdict import Verdict

DAYS = 14


@dataclass(frozen=True, slots=True)
class Stats:
    """Counts as they are now; days, verdicts and usage are of the last two weeks."""

    people: int
    boards: int
    days: tuple[DayCount, ...]
    verdicts: Mapping[Verdict, int]
    backlog: Mapping[str, Mapping[str, int]]
    """Jobs that have not ended, by GPU type and state."""
    usage: tuple[Usage, ...] = ()
    """What the evaluations of the two weeks needed of the GPUs."""


async def stats(store: Store, clock: Clock) -> Stats:
    """The counts of an installation."""
    today = clock.now().replace(hour=0, minute=0, second=0, microsecond=0)
    since = today - timedelta(days=DAYS - 1)
    return Stats(
        people=await store.statistics.people(),
        boards=len(await store.boards.all()),
        days=await store.statistics.days(since),
        verdicts=await store.statistics.verdicts(since),
        backlog=await store.jobs.backlog(),
        usage=await store.statistics.usage(since),
    )
