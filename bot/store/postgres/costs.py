"""Quotas of GPU time in Postgres, and what counts for them."""

from datetime import datetime, timedelta

from asyncpg import Record

from bot.domain.costs import (
    GpuTime,
    Prices,
    Quota,
    QuotaKey,
    Unit,
    Usage,
    UsageKind,
    day_after,
    day_of,
    shortage,
)
from bot.domain.ids import BoardId, PersonId
from bot.store.postgres.database import Connection, Database, query

AGAIN_SOON = timedelta(seconds=2)
"""How long until a job that waits for running jobs is checked again."""
AGAIN_LATER = timedelta(seconds=60)
"""The same for a job that waits for the next day, because an admin may allow more before."""

Line = tuple[str, int, datetime, list[str], list[int]]
"""GPU type, free slots, time, pools, and their free slots, as `jobs.claim` takes them."""


class PostgresCosts:
    """GPU time, with the quotas that limit it."""

    def __init__(self, database: Database, prices: Prices) -> None:
        self._database = database
        self.prices = prices

    async def set_quota(self, quota: Quota) -> None:
        await self._database.rows("costs.set_quota", *_key(quota.key), quota.most, quota.reason)

    async def drop_quota(self, key: QuotaKey) -> bool:
        return await self._database.row("costs.drop_quota", *_key(key)) is not None

    async def quotas(self) -> tuple[Quota, ...]:
        return tuple(map(_quota, await self._database.rows("costs.quotas")))

    async def counted(self, since: datetime) -> tuple[GpuTime, ...]:
        return tuple(map(_time, await self._database.rows("costs.spent", since)))

    async def usage(self, since: datetime, person: PersonId | None = None) -> tuple[Usage, ...]:
        found = await self._database.rows("costs.usage", since, person)
        return tuple(
            Usage(
                row["day"],
                row["board"],
                PersonId(row["id"]),
                row["person"],
                row["gpu"],
                UsageKind(row["kind"]),
                row["evaluations"],
                row["seconds"],
            )
            for row in found
        )


async def postpone(connection: Connection, prices: Prices, line: Line) -> None:
    """Let the next jobs without room in a quota wait, until all of the next jobs have room.

    Until the transaction ends, no other claim reads the quotas.
    """
    quotas = [_quota(row) for row in await connection.fetch(query("costs.lock_quotas"))]
    if not quotas:
        return
    now = line[2]
    times = [_time(row) for row in await connection.fetch(query("costs.spent"), day_of(now))]
    while await _postpone_some(connection, quotas, prices, (line, times)):
        pass


async def _postpone_some(
    connection: Connection,
    quotas: list[Quota],
    prices: Prices,
    state: tuple[Line, list[GpuTime]],
) -> bool:
    """Let the first job without room wait, and those like it; return whether there was one."""
    (gpu, _, now, *_), times = state
    planned, fitting = list(times), []
    for row in await connection.fetch(query("costs.candidates"), *state[0]):
        if not row["counts"]:
            continue
        need = GpuTime(
            PersonId(row["person"]),
            _board(row["board"]),
            gpu,
            reserved_s=row["limit_s"] * row["cards"],
        )
        short = shortage(quotas, planned, prices, need)
        if short is None:
            planned.append(need)
            fitting.append(row["id"])
            continue
        again = AGAIN_SOON if short.ends_with_jobs else AGAIN_LATER
        until = min(now + again, day_after(now))
        key = short.quota.key
        person = need.person if key.each_person else None
        values = gpu, now, need.reserved_s, person, key.board, until, short.notice, fitting
        await connection.execute(query("costs.postpone"), *values)
        return True
    return False


def _key(key: QuotaKey) -> tuple[object, ...]:
    return key.unit.value, key.each_person, key.board, key.gpu, key.person


def _quota(row: Record) -> Quota:
    person = None if row["person"] is None else PersonId(row["person"])
    board = _board(row["board"])
    key = QuotaKey(Unit(row["unit"]), row["each_person"], board, row["gpu"], person)
    return Quota(key, row["most"], row["reason"])


def _time(row: Record) -> GpuTime:
    return GpuTime(
        PersonId(row["person"]),
        _board(row["board"]),
        row["gpu"],
        row["used_s"],
        row["reserved_s"],
    )


def _board(number: int | None) -> BoardId | None:
    return None if number is None else BoardId(number)
