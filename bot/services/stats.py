"""Tells what goes on in an installation: people, submissions a day, verdicts, the queue."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from bot.domain.prices import NO_PRICES, Prices
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
    prices: Prices = field(default_factory=dict)
    """What a second of each GPU type costs."""


async def stats(store: Store, clock: Clock, prices: Prices = NO_PRICES) -> Stats:
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
        prices=prices,
    )
