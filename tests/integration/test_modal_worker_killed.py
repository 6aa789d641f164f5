"""A worker killed in mid-flight: its jobs go on at Modal, and the next worker takes them up."""

import asyncio
import signal
import subprocess
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import asyncpg
import pytest

from runners.backends import modal_app
from tests.doubles.evaluating import RIGHT
from tests.doubles.modal.server import LocalModal
from tests.doubles.modal.visible import local_modal
from tests.e2e.command import Podium

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

JOBS = 4
SLOTS = 2
SLOW = "import time\ntime.sleep(4)\n" + RIGHT
"""Slow to import, so that the killing falls between start and end."""
CALLS = "select call from jobs where call is not null"
ATTACHED = "select count(*) from jobs where call is not null"
ENDED = "select count(*) from jobs where state = 'succeeded'"
BILLED = """
select count(distinct submissions.person)
from evaluations join submissions on submissions.id = evaluations.submission
where used_s > 0
"""
UNTIMED = "insert into reference_times (task_version, gpu) select id, 'CPU' from task_versions"
"""So that the house has no job of its own."""


@pytest.fixture
async def server() -> AsyncIterator[LocalModal]:
    async with local_modal() as server:
        await modal_app.deploy()
        yield server


@pytest.fixture
def podium(tmp_path: Path, postgres_dsn: str, server: LocalModal) -> Podium:
    return Podium(tmp_path, f"modal:CPU={SLOTS}", DATABASE_URL=postgres_dsn, **server.environment)


async def queued(podium: Podium, dsn: str) -> None:
    """So many jobs, by as many people."""
    await asyncio.to_thread(podium.publish)
    connection = await asyncpg.connect(dsn)
    await connection.execute(UNTIMED)
    await connection.close()
    file = podium.file("slow.py", SLOW)
    for number in range(JOBS):
        answer = await asyncio.to_thread(
            podium, "submit", file, "--leaderboard", "identity", "--mode", "test",
            "--as", f"person{number}", "--no-wait",
        )  # fmt: skip
        assert answer.returncode == 0, answer.stderr


async def until(dsn: str, query: str, enough: Callable[[int], bool], within_s: float) -> int:
    """Wait until a count is what it should be."""
    connection = await asyncpg.connect(dsn)
    try:
        async with asyncio.timeout(within_s):
            while not enough(found := await connection.fetchval(query)):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            return int(found)
    finally:
        await connection.close()


async def calls(dsn: str) -> set[str]:
    """The calls that jobs are known by at Modal."""
    connection = await asyncpg.connect(dsn)
    try:
        return {row["call"] for row in await connection.fetch(CALLS)}
    finally:
        await connection.close()


@pytest.mark.timeout(240)
async def test_every_job_of_a_killed_worker_runs_once(
    server: LocalModal, podium: Podium, postgres_dsn: str
) -> None:
    await queued(podium, postgres_dsn)
    asked = server.scheduler.begun + 2  # each worker asks one container what it offers
    first = podium.start("worker")
    await until(postgres_dsn, ATTACHED, lambda count: count == SLOTS, 60)
    in_flight = await calls(postgres_dsn)
    await asyncio.to_thread(end, first, signal.SIGKILL)
    assert await until(postgres_dsn, ENDED, lambda _: True, 5) == 0
    second = podium.start("worker")
    try:
        await until(postgres_dsn, ENDED, lambda count: count >= JOBS, 120)
    finally:
        await asyncio.to_thread(end, second, signal.SIGTERM)
    assert server.scheduler.begun == JOBS + asked
    assert len(in_flight) == SLOTS
    assert await until(postgres_dsn, BILLED, lambda _: True, 5) == JOBS
    assert in_flight <= await calls(postgres_dsn)


def end(worker: "subprocess.Popen[str]", how: signal.Signals) -> None:
    worker.send_signal(how)
    worker.wait(60)
    if worker.stdout is not None:
        worker.stdout.close()
