"""Podium on a Ray cluster: a worker killed in mid-flight, and a node."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import pytest

from tests.doubles.evaluating import RIGHT
from tests.doubles.ray.local import CPU_NODE, LocalRay, local_ray
from tests.e2e.command import Podium

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.slow,
    pytest.mark.timeout(240),
    pytest.mark.skipif(sys.platform != "linux", reason="Ray is for Linux"),
]

SLOW = "import time\ntime.sleep(4)\n" + RIGHT
"""Slow to import, so that the killing falls between start and end."""
BUILDING = "select count(*) from job_events where kind = 'build'"
"""Told by the harness: the node has the call."""
ENDED = "select count(*) from jobs where state = 'succeeded'"
CALL, TRIES_LEFT = "select call from jobs", "select max_attempts - attempt from jobs"
UNTIMED = "insert into reference_times (task_version, gpu) select id, 'CPU' from task_versions"
"""So that the house has no job of its own."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalRay]:
    with local_ray(CPU_NODE) as server:
        yield server


@pytest.fixture
async def database(postgres_dsn: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(postgres_dsn)
    yield connection
    await connection.close()


@pytest.fixture
async def podium(
    tmp_path: Path, postgres_dsn: str, database: asyncpg.Connection, cluster: LocalRay
) -> Podium:
    """With one slow job in the queue."""
    made = Podium(tmp_path, "ray:CPU=1", DATABASE_URL=postgres_dsn, **cluster.environment)
    await asyncio.to_thread(made.publish)
    await database.execute(UNTIMED)
    answer = await asyncio.to_thread(
        made, "submit", made.file("slow.py", SLOW), "--leaderboard", "identity",
        "--mode", "test", "--as", "ada", "--no-wait",
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    return made


@asynccontextmanager
async def working(podium: Podium, how_it_ends: signal.Signals) -> AsyncIterator[None]:
    """A worker, until left."""
    worker = podium.start("worker")
    try:
        yield
    finally:
        worker.send_signal(how_it_ends)
        await asyncio.to_thread(worker.wait, 60)
        if worker.stdout is not None:
            worker.stdout.close()


async def until(database: asyncpg.Connection, query: str, within_s: float = 90) -> None:
    """Wait until a query counts something."""
    async with asyncio.timeout(within_s):
        while not await database.fetchval(query):  # noqa: ASYNC110 - the queue is another's
            await asyncio.sleep(0.05)


async def test_the_call_of_a_killed_worker_goes_on_and_the_next_one_takes_it_up(
    podium: Podium, database: asyncpg.Connection
) -> None:
    async with working(podium, signal.SIGKILL):
        await until(database, BUILDING)
    in_flight = await database.fetchval(CALL)
    assert await database.fetchval(ENDED) == 0
    async with working(podium, signal.SIGTERM):
        await until(database, ENDED)
    assert await database.fetchval(CALL) == in_flight  # it was not begun anew


async def test_the_job_of_a_killed_node_is_done_on_another_and_costs_no_try(
    podium: Podium, database: asyncpg.Connection, cluster: LocalRay
) -> None:
    # Before the first one is lost: a job whose GPU type no node has costs a try.
    await asyncio.to_thread(cluster.add, CPU_NODE)
    async with working(podium, signal.SIGTERM):
        await until(database, BUILDING)
        in_flight, tries_left = await database.fetchval(CALL), await database.fetchval(TRIES_LEFT)
        await asyncio.to_thread(cluster.lose)
        await until(database, ENDED)
    assert await database.fetchval(CALL) != in_flight
    assert await database.fetchval(TRIES_LEFT) == tries_left
