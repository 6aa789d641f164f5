"""Prints how fast the queue enqueues and claims, and whether that depends on its depth.

python -m tests.benchmarks.queue [--depths 100 1000 10000 100000]
"""

import argparse
import asyncio
import tempfile
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from shutil import rmtree

import asyncpg

from bot.domain.ids import PersonId
from bot.domain.submission import NewSubmission
from bot.ports import Claim, Store
from bot.store.clock import SystemClock
from bot.store.embedded import open_database
from bot.store.migrate import migrate
from bot.store.postgres import open_store
from runners.contract.task import Mode
from tests.doubles.stored import Scene, set_up

PEOPLE = 50
WORKERS = 4
BATCH = 8
CLAIMS = 2000
WRITERS = 8
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


@dataclass(frozen=True, slots=True)
class Result:
    """One line of the table."""

    depth: str
    claims: int
    seconds: float

    @property
    def rate(self) -> float:
        return self.claims / self.seconds


async def fill(dsn: str, scene: Scene, people: list[PersonId], jobs: int) -> None:
    """Queue jobs in bulk, round robin over people."""
    connection = await asyncpg.connect(dsn)
    try:
        board = scene.board
        await connection.execute(FILL, people, board.id, board.task_version, jobs, timeout=120)
    finally:
        await connection.close()


async def clear(dsn: str) -> None:
    """Empty the queue, and leave the planner without any statistics of it."""
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(EMPTY)
    finally:
        await connection.close()


async def timed_claims(store: Store, wanted: int) -> float:
    """Seconds in which several workers together claim `wanted` jobs."""

    async def work(name: str, share: int) -> None:
        while share > 0:
            share -= len(await store.jobs.claim(Claim(name, {"CPU": min(BATCH, share)}, LEASE)))

    started = time.perf_counter()
    await asyncio.gather(*(work(f"w{n}", wanted // WORKERS) for n in range(WORKERS)))
    return time.perf_counter() - started


async def timed_adds(scene: Scene, people: list[PersonId], each: int) -> float:
    """Submissions stored a second, one transaction each, by several writers."""

    async def write(person: PersonId) -> None:
        for _ in range(each):
            await scene.store.submissions.add(
                NewSubmission(
                    person=person,
                    board=scene.board.id,
                    task_version=scene.board.task_version,
                    file_name="kernel.py",
                    source="def custom_kernel(data): ...",
                    mode=Mode.RANKED,
                    gpus=("CPU",),
                    priority=10,
                )
            )

    started = time.perf_counter()
    await asyncio.gather(*(write(person) for person in people[:WRITERS]))
    return WRITERS * each / (time.perf_counter() - started)


async def at_depth(dsn: str, scene: Scene, people: list[PersonId], depth: int) -> Result:
    """Claims from a queue of that depth, filled anew as often as `CLAIMS` of them take."""
    share = min(CLAIMS, depth)
    rounds = CLAIMS // share
    filling = claiming = 0.0
    for _ in range(rounds):
        await clear(dsn)
        started = time.perf_counter()
        await fill(dsn, scene, people, depth)
        filling += time.perf_counter() - started
        claiming += await timed_claims(scene.store, share)
    print(f"filled {depth} in bulk at {rounds * depth / filling:,.0f} jobs/s")
    return Result(f"{depth}", rounds * share, claiming)


async def fairness(dsn: str, scene: Scene, people: list[PersonId]) -> tuple[Result, int]:
    """Claims behind one person's 10,000 jobs, and the place of a second person's 20th job."""
    await clear(dsn)
    await fill(dsn, scene, people[:1], 10_000)
    await fill(dsn, scene, people[1:2], 20)
    started = time.perf_counter()
    order: list[PersonId] = []
    while order.count(people[1]) < 20 and len(order) < 10_020:
        claimed = await scene.store.jobs.claim(Claim("w", {"CPU": BATCH}, LEASE))
        order += [job.person for job in claimed]
    seconds = time.perf_counter() - started
    place = max(index for index, person in enumerate(order) if person == people[1]) + 1
    return Result("10k of one", len(order), seconds), place


async def measure(dsn: str, depths: list[int]) -> None:
    """Run every row and print the table."""
    await migrate(dsn)
    async with open_store(dsn, SystemClock()) as store:
        scene = await set_up(store)
        people = [(await store.people.ensure(f"p:{n}", f"p{n}")).id for n in range(PEOPLE)]
        await store.jobs.limit("CPU", None)
        adds = await timed_adds(scene, people, 250)
        results = [await at_depth(dsn, scene, people, depth) for depth in depths]
        crowd, place = await fairness(dsn, scene, people)
    print(f"enqueue: {adds:,.0f} submissions/s ({WRITERS} writers, one transaction each)")
    print(f"claims:  {WORKERS} workers, {BATCH} at a time, {PEOPLE} people")
    print(f"{'depth':>12} {'claims':>8} {'claims/s':>10} {'ratio':>7}")
    for result in (*results, crowd):
        ratio = result.rate / results[0].rate
        print(f"{result.depth:>12} {result.claims:>8} {result.rate:>10,.0f} {ratio:>7.2f}")
    print(f"the 20th job of a second person came at place {place} of 10,020")


async def on_embedded(folder: Path, depths: list[int]) -> None:
    """Measure on a server of our own."""
    async with open_database(folder / "data") as database:
        await measure(database.dsn, depths)


def main() -> None:
    """Measure on a fresh embedded server in a temporary folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--depths", type=int, nargs="+", default=[100, 1000, 10_000, 100_000])
    depths = parser.parse_args().depths
    folder = Path(tempfile.mkdtemp(prefix="podium-bench-"))
    folder.chmod(0o711)
    try:
        asyncio.run(on_embedded(folder, depths))
    finally:
        rmtree(folder)


if __name__ == "__main__":
    main()
