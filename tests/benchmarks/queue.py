"""Prints how fast the queue stores and claims jobs, whatever the number of jobs and of people.

python -m tests.benchmarks.queue [--depths 100 1000 10000 100000] [--people 50 1000] [--repeat 3]
"""

import argparse
import asyncio
import statistics
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from datetime import timedelta

import asyncpg
import psutil

from bot.app.context import SystemClock
from bot.domain.ids import PersonId
from bot.domain.job import Claim
from bot.domain.submission import NewSubmission
from bot.store.postgres import open_store
from runners.contract.task import Mode
from tests.doubles.databases import fresh_database
from tests.doubles.stored import Scene, set_up

WORKERS = 4
BATCH = 8
CLAIMS = 2000
WRITERS = 8
ADDS = 200
BACKLOG = 10_000
NEWCOMERS = 20
LEASE = timedelta(seconds=300)
FILL = """
with added as (
    insert into submissions (person, board, task_version, file_name, source, mode, gpus, created_at)
    select ($1::bigint[])[1 + n % cardinality($1)], $2, $3, 'kernel.py',
        (select sha256 from sources limit 1), 'ranked', '{CPU}', now()
    from generate_series(1, $4::int) as n
    returning *
)
insert into jobs (
    submission, person, gpu, mode, priority, turn, max_attempts, run_at, created_at, moved_at
)
select id, person, 'CPU', mode, 10, next_turn(person, 'CPU', 10), 3,
    created_at, created_at, created_at
from added
"""
EMPTY = "truncate present_turns, jobs, submissions, job_events, evaluations, scores"
BACKENDS = "select pid from pg_stat_activity where backend_type = 'client backend'"


@dataclass(frozen=True, slots=True)
class Rates:
    """What one repetition of a row measured."""

    claims: float
    """Claimed jobs a second."""
    claim_cpu_us: float
    """CPU time of this process and the server's, per claimed job: other load does not change it."""
    adds: float
    """Stored submissions a second by one writer."""
    adds_at_once: float
    """The same by several writers."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: the medians of its repetitions."""

    depth: str
    people: int
    repetitions: tuple[Rates, ...]

    def median(self, of: Callable[[Rates], float]) -> float:
        """The middle one of the repetitions' values."""
        return statistics.median(of(rates) for rates in self.repetitions)

    def line(self, first: "Row") -> str:
        """The row as printed, its claims compared with those of another row."""
        claims = self.median(lambda rates: rates.claims)
        ratio = claims / first.median(lambda rates: rates.claims)
        cpu = self.median(lambda rates: rates.claim_cpu_us)
        adds = self.median(lambda rates: rates.adds)
        at_once = self.median(lambda rates: rates.adds_at_once)
        return (
            f"{self.depth:>12} {self.people:>7} {claims:>9,.0f} {ratio:>6.2f} {cpu:>13,.0f}"
            f" {adds:>10,.0f} {at_once:>16,.0f}"
        )


@dataclass(frozen=True, slots=True)
class Bench:
    """A database to measure."""

    dsn: str
    scene: Scene
    people: tuple[PersonId, ...]

    async def repetition(self, depth: int, people: int) -> Rates:
        """Measure a queue of this depth once; it is filled again whenever `CLAIMS` need it."""
        share = min(CLAIMS, depth)
        rounds = CLAIMS // share
        seconds = cpu = 0.0
        for _ in range(rounds):
            await clear(self.dsn)
            await fill(self.dsn, self.scene, self.people[:people], depth)
            took, used = await self._timed_claims(share)
            seconds += took
            cpu += used
        return await self._rates(rounds * share, seconds, cpu)

    async def behind_a_backlog(self) -> Rates:
        """Measure claims if one person has a backlog and others submit one job each."""
        await clear(self.dsn)
        await fill(self.dsn, self.scene, self.people[:1], BACKLOG)
        await fill(self.dsn, self.scene, self.people[1 : NEWCOMERS + 1], NEWCOMERS)
        return await self._rates(CLAIMS, *await self._timed_claims(CLAIMS))

    async def place_of_the_last_newcomer(self) -> int:
        """The number of claims until everyone who came after a backlog has been served."""
        await clear(self.dsn)
        await fill(self.dsn, self.scene, self.people[:1], BACKLOG)
        await self._claims("w", 1000)
        await fill(self.dsn, self.scene, self.people[1 : NEWCOMERS + 1], NEWCOMERS)
        order = await self._claims("w", 200)
        return 1 + max(place for place, person in enumerate(order) if person != self.people[0])

    async def _rates(self, claims: int, seconds: float, cpu: float) -> Rates:
        alone = await self._timed_adds(writers=1)
        at_once = await self._timed_adds(writers=WRITERS)
        return Rates(claims / seconds, cpu / claims * 1e6, alone, at_once)

    async def _timed_claims(self, wanted: int) -> tuple[float, float]:
        """Seconds, and seconds of CPU time, in which several workers claim `wanted` jobs."""
        work = [self._claims(f"w{n}", wanted // WORKERS) for n in range(WORKERS)]
        cpu = await cpu_seconds(self.dsn)
        seconds = await timed(work)
        return seconds, await cpu_seconds(self.dsn) - cpu

    async def _claims(self, worker: str, wanted: int) -> list[PersonId]:
        order: list[PersonId] = []
        while len(order) < wanted:
            slots = {"CPU": min(BATCH, wanted - len(order))}
            claimed = await self.scene.store.jobs.claim(Claim(worker, slots, LEASE))
            if not claimed:
                raise RuntimeError("the queue is empty before the measurement is over")
            order += [job.person for job in claimed]
        return order

    async def _timed_adds(self, writers: int) -> float:
        """Submissions stored per second, in one transaction each."""
        each = ADDS // writers
        return (
            writers
            * each
            / await timed([self.store_jobs(person, each) for person in self.people[:writers]])
        )

    async def store_jobs(self, person: PersonId, count: int) -> None:
        """Submit as the product does, one after the other."""
        board = self.scene.board
        new = NewSubmission(
            person=person,
            board=board.id,
            task_version=board.task_version,
            file_name="kernel.py",
            source="def custom_kernel(data): ...",
            mode=Mode.RANKED,
            gpus=("CPU",),
            priority=10,
        )
        for _ in range(count):
            await self.scene.store.submissions.add(new)


async def timed(work: Sequence[Coroutine[object, object, object]]) -> float:
    """Seconds that these take together."""
    started = time.perf_counter()
    await asyncio.gather(*work)
    return time.perf_counter() - started


async def cpu_seconds(dsn: str) -> float:
    """The CPU time of this process and of the server processes that work for it, so far."""
    connection = await asyncpg.connect(dsn)
    try:
        backends = [row["pid"] for row in await connection.fetch(BACKENDS)]
        own = await connection.fetchval("select pg_backend_pid()")
        times = [psutil.Process(pid).cpu_times() for pid in backends if pid != own]
    finally:
        await connection.close()
    return time.process_time() + sum(spent.user + spent.system for spent in times)


async def fill(dsn: str, scene: Scene, people: Sequence[PersonId], jobs: int) -> None:
    """Queue jobs in bulk, round robin over people."""
    connection = await asyncpg.connect(dsn)
    try:
        board = scene.board
        await connection.execute(FILL, people, board.id, board.task_version, jobs, timeout=120)
    finally:
        await connection.close()


async def clear(dsn: str) -> None:
    """Empty the queue, and remove the planner's statistics of it."""
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(EMPTY)
    finally:
        await connection.close()


async def measure(arguments: argparse.Namespace) -> None:
    """Run every row and print the table."""
    async with fresh_database() as dsn, open_store(dsn, SystemClock()) as store:
        scene = await set_up(store)
        crowd = max(*arguments.people, NEWCOMERS + 1)
        people = [(await store.people.ensure(f"p:{n}", f"p{n}")).id for n in range(crowd)]
        bench = Bench(dsn, scene, tuple(people))
        await bench.store_jobs(people[0], 1)  # the source that the bulk rows name
        print(f"{WORKERS} workers claim {BATCH} at a time; medians of {arguments.repeat}")
        print(
            f"{'depth':>12} {'people':>7} {'claims/s':>9} {'ratio':>6} {'CPU us/claim':>13}"
            f" {'1 writer/s':>10} {f'{WRITERS} writers/s':>16}"
        )
        await print_rows(bench, arguments)
        last = await bench.place_of_the_last_newcomer()
    print(f"{NEWCOMERS} newcomers behind 9,000 jobs of one person: served after {last} claims")


async def print_rows(bench: Bench, arguments: argparse.Namespace) -> None:
    """Every row as soon as it is measured."""
    times = range(arguments.repeat)
    for people in arguments.people:
        rows: list[Row] = []
        for depth in arguments.depths:
            rates = [await bench.repetition(depth, people) for _ in times]
            rows.append(Row(f"{depth:,}", people, tuple(rates)))
            print(rows[-1].line(rows[0]), flush=True)
    backlog = [await bench.behind_a_backlog() for _ in times]
    row = Row(f"{BACKLOG:,} + {NEWCOMERS}", 1 + NEWCOMERS, tuple(backlog))
    print(row.line(row))


def main() -> None:
    """Measure on a fresh embedded server in a temporary folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--depths", type=int, nargs="+", default=[100, 1000, 10_000, 100_000])
    parser.add_argument("--people", type=int, nargs="+", default=[50, 1000])
    parser.add_argument("--repeat", type=int, default=3)
    asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()
