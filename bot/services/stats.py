"""Tells what goes on in an installation: people, submissions a day, verdicts, the queue."""

from datetime import timedelta

from bot.domain.prices import NO_PRICES, Prices
from bot.domain.records import InstallationStats
from bot.ports import Clock, Store

DAYS = 14


async def stats(store: Store, clock: Clock, prices: Prices = NO_PRICES) -> InstallationStats:
    """The counts of an installation."""
    today = clock.now().replace(hour=0, minute=0, second=0, microsecond=0)
    since = today - timedelta(days=DAYS - 1)
    return InstallationStats(
        people=await store.statistics.people(),
        boards=len(await store.boards.all()),
        days=await store.statistics.days(since),
        verdicts=await store.statistics.verdicts(since),
        backlog=await store.jobs.backlog(),
        usage=await store.statistics.usage(since),
        prices=prices,
    )
