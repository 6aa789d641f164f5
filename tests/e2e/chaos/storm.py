"""A whole run: people hand in, processes are killed and come back, and everything is examined."""

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import asyncpg
import psutil

from bot.app.context import SystemClock
from bot.domain.ids import SubmissionId
from bot.store.errors import DRIVER_FAILURES
from bot.store.postgres import open_store
from tests.e2e.chaos.crowd import PEOPLE, hand_in, open_boards, orders
from tests.e2e.chaos.findings import Expected, Findings, count_events, examine, longest_recovery_s
from tests.e2e.chaos.schedule import Blow, Victim, schedule
from tests.e2e.chaos.site import LEASE_S, Site

VICTIM_LIMIT_S = 60.0
"""How long a blow waits for a victim of its kind to be there."""
LOOK_S = 0.05
SETTLE_S = 0.25
STALL_S = LEASE_S + 3.2
"""Longer than the lease, the reaper's round and the backoff: by then another worker has the job."""
GONE_S = 10.0
OPEN = "select count(*) from jobs where state in ('queued', 'running')"
ON_CPU = """
select distinct submission from jobs
where gpu = 'CPU' and state in ('queued', 'running') and (state = 'running' or call is not null)
"""


@dataclass(frozen=True, slots=True)
class Plan:
    """The measures of a run."""

    seed: int
    jobs: int
    real: int
    blows: Mapping[Victim, int]
    span_s: float
    """The time over which submissions arrive and blows fall."""
    limit_s: float
    """After which the queue must be empty."""


@dataclass(slots=True)
class Outcome:
    """What happened and what it left."""

    kills: Counter[Victim] = field(default_factory=Counter)
    missed: Counter[Victim] = field(default_factory=Counter)
    starts: dict[str, int] = field(default_factory=dict)
    statuses: dict[str, int] = field(default_factory=dict)
    findings: Findings = field(default_factory=Findings)
    survivors: list[str] = field(default_factory=list)
    dropped: int = 0
    """Results that came too late and were refused."""
    recovery_s: float = 0.0
    wall_s: float = 0.0


class Storm:
    """Strikes the processes of a site by a schedule."""

    def __init__(self, site: Site, dsn: str) -> None:
        self._site = site
        self._dsn = dsn
        self._stalls: set[asyncio.Task[None]] = set()
        self.kills: Counter[Victim] = Counter()
        self.missed: Counter[Victim] = Counter()
        self.struck: set[int] = set()
        self.moments: list[datetime] = []

    async def rage(self, blows: Sequence[Blow]) -> None:
        """Deal every blow at its moment, or as soon as there is a victim."""
        began = time.monotonic()
        for blow in blows:
            await asyncio.sleep(max(0.0, blow.at_s - (time.monotonic() - began)))
            hit = await self._strike(blow)
            (self.kills if hit else self.missed)[blow.victim] += 1
        await asyncio.gather(*self._stalls)

    async def _strike(self, blow: Blow) -> bool:
        deadline = time.monotonic() + VICTIM_LIMIT_S
        while time.monotonic() < deadline:
            victims = self._site.candidates_for(blow.victim)
            known = blow.victim is not Victim.CANDIDATE or (
                bool(victims) and await self._mark_those_on_the_cpu()
            )
            if victims and known and self._hit(blow, victims[int(blow.choice * len(victims))]):
                return True
            await asyncio.sleep(LOOK_S)
        return False

    def _hit(self, blow: Blow, process: psutil.Process) -> bool:
        self.moments.append(datetime.now(UTC))
        try:
            if blow.victim is not Victim.STALLED:
                process.kill()
                return True
            process.send_signal(signal.SIGSTOP)
        except psutil.NoSuchProcess:
            return False
        self._stalls.add(asyncio.create_task(_go_on(process)))
        return True

    async def _mark_those_on_the_cpu(self) -> bool:
        """Note whose candidate is about to die; False while the database cannot say it."""
        try:
            connection = await asyncpg.connect(self._dsn, timeout=1)
        except DRIVER_FAILURES:
            return False
        try:
            rows = await connection.fetch(ON_CPU, timeout=1)
        except DRIVER_FAILURES:
            return False
        finally:
            connection.terminate()
        self.struck |= {row["submission"] for row in rows}
        return True


async def _go_on(process: psutil.Process) -> None:
    await asyncio.sleep(STALL_S)
    with suppress(psutil.NoSuchProcess):
        process.send_signal(signal.SIGCONT)


async def run(folder: Path, plan: Plan) -> Outcome:
    """The whole run in an empty folder that the database's account can enter."""
    began = time.monotonic()
    site = Site(folder)
    try:
        outcome = await _under_fire(site, plan)
    finally:
        await site.abandon()
    outcome.wall_s = time.monotonic() - began
    return outcome


async def _under_fire(site: Site, plan: Plan) -> Outcome:
    dsn = await site.start()
    storm = Storm(site, dsn)
    wanted = orders(plan.seed, plan.jobs, plan.real)
    async with open_store(dsn, SystemClock()) as store:
        people = await open_boards(store)
        pause_s = 0.9 * plan.span_s * len(PEOPLE) / plan.jobs
        async with asyncio.timeout(plan.limit_s), asyncio.TaskGroup() as group:
            shares = [
                group.create_task(
                    hand_in(
                        store,
                        people,
                        tuple(each for each in wanted if each.person == name),
                        pause_s,
                    )
                )
                for name in PEOPLE
            ]
            group.create_task(storm.rage(schedule(plan.seed, plan.blows, plan.span_s)))
        receipts: dict[str, SubmissionId] = {}
        for share in shares:
            receipts |= share.result()
        await _until_done(dsn, plan.limit_s)
    expected = Expected(wanted, receipts, frozenset(storm.struck))
    return await _examined(site, dsn, storm, expected)


async def _examined(site: Site, dsn: str, storm: Storm, expected: Expected) -> Outcome:
    outcome = Outcome(kills=storm.kills, missed=storm.missed)
    outcome.findings = await examine(dsn, expected, site.logs)
    outcome.recovery_s = await longest_recovery_s(dsn, storm.moments)
    outcome.dropped = count_events(site.logs, "result-dropped")
    site.note()
    outcome.statuses = await site.stop()
    outcome.starts = {unit.name: unit.starts for unit in (site.up, *site.workers)}
    outcome.survivors = await _survivors(site)
    return outcome


async def _until_done(dsn: str, limit_s: float) -> None:
    """Wait for an empty queue; a queue that does not empty is found by the examination."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        with suppress(*DRIVER_FAILURES):
            connection = await asyncpg.connect(dsn, timeout=5)
            try:
                if await connection.fetchval(OPEN) == 0:
                    return
            finally:
                connection.terminate()
        await asyncio.sleep(SETTLE_S)


async def _survivors(site: Site) -> list[str]:
    left = site.survivors()
    for _ in range(round(GONE_S / SETTLE_S)):
        if not left:
            break
        await asyncio.sleep(SETTLE_S)
        left = site.survivors()
    return [f"{process.pid} {' '.join(process.cmdline())}" for process in left]
