"""Stored runs that passed and are too noisy to be ranked are listed as not ranked."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, TypeAlias

import asyncpg
import pytest

from bot.domain.noise import passed_too_noisy
from bot.store.migrate import migrate, migrations_folder
from runners.contract.evaluation import CaseKind, Evaluation, StopReason
from runners.contract.task import Mode
from runners.contract.verdict import Verdict
from tests.conftest import database_url
from tests.doubles.factories import make_case, make_evaluation, make_measurement, make_noisy_case
from tests.migrations.test_judged_times import PEOPLE

pytestmark = pytest.mark.postgres
(FILE,) = migrations_folder().glob("*_noisy_runs.sql")
Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

SUBMISSION = """
with made as (
    insert into submissions (person, board, task_version, file_name, source, mode, gpus, created_at)
    values ($1, 1, 1, 'k.py', repeat('a', 64), $2, array[$3], now()) returning id
), queued as (
    insert into jobs (submission, person, gpu, mode, priority, turn, max_attempts, run_at,
        created_at, moved_at, state, finished_at)
    select id, $1, $3, $2, 10, 1, 3, now(), now(), now(), 'succeeded', now() from made
    returning id, submission
)
insert into evaluations (job, submission, task_version, gpu, verdict, message, wall_s, evaluation,
    at, used_s)
select id, submission, 1, $3, $4, '', 1, $5, now(), 1 from queued returning job
"""
SCORE = """
insert into scores (job, submission, task_version, gpu, time_ns, half_width_ns)
select job, submission, task_version, gpu, 1000000, 230000 from evaluations where job = $1
"""
NOISY = make_evaluation(cases=(make_case(message="a\0b"), make_noisy_case()), log="\0 \\u0000 \\")


@pytest.fixture
async def before(postgres_server: str, tmp_path: Path) -> AsyncIterator[Connection]:
    """A database of before, with people and a board but no results."""
    for file in migrations_folder().glob("0*.sql"):
        if file.name < FILE.name:
            shutil.copy(file, tmp_path)
    server = await asyncpg.connect(postgres_server)
    await server.execute("create database noisy_runs template template0")
    dsn = database_url(postgres_server, "noisy_runs")
    await migrate(dsn, tmp_path)
    connection = await asyncpg.connect(dsn)
    await connection.execute(PEOPLE)
    await connection.execute("insert into pools (gpu) values ('CPU')")
    await connection.execute(
        "insert into task_versions (board, number, digest, definition, created_at)"
        " values (1, 1, 'x', '{}', now())"
    )
    yield connection
    await connection.close()
    await server.execute("drop database noisy_runs with (force)")
    await server.close()


async def stored(before: Connection, found: Evaluation, person: int = 1) -> int:
    """Store an evaluation as before; return its job."""
    values = person, found.mode.value, found.gpu, found.verdict.value, found.model_dump_json()
    return int(await before.fetchval(SUBMISSION, *values))


def timed(half_width_ns: float, time_ns: float = 1e6, **changes: object) -> Evaluation:
    measured = make_measurement(time_ns, half_width_ns).model_copy(update=changes)
    return make_evaluation(cases=(make_case(CaseKind.BENCHMARK, measurement=measured),))


@pytest.mark.parametrize(
    "found",
    [
        NOISY,
        timed(150_000),
        timed(150_001),
        timed(15_000, 5_000),
        timed(15_001, 5_000),
        timed(9e5, claimed_ns=1e6),
        *(timed(9e5, stop_reason=each) for each in StopReason),
        *(NOISY.model_copy(update={"mode": each}) for each in Mode),
        *(NOISY.model_copy(update={"gpu": each}) for each in ("CPU", "L4")),
    ],
)
async def test_the_rule_in_sql_is_that_of_the_domain(before: Connection, found: Evaluation) -> None:
    job = await stored(before, found)
    await before.execute(FILE.read_text("utf-8"))
    noisy = passed_too_noisy(found)
    assert await before.fetchval("select noisy from evaluations") == noisy
    assert await before.fetchval("select refused from entrants") == (job if noisy else None)


async def test_of_a_persons_noisy_and_failed_runs_the_newest_is_listed(before: Connection) -> None:
    failed = make_evaluation(verdict=Verdict.CRASHED)
    runs: tuple[tuple[int, Evaluation], ...] = (1, NOISY), (1, failed), (2, failed), (2, NOISY)
    jobs = [await stored(before, found, person) for person, found in runs]
    moves = "select moves from leaderboards where gpu = 'CPU'"
    earlier = await before.fetchval(moves)
    await before.execute(FILE.read_text("utf-8"))
    listed: list[Any] = await before.fetch("select refused from entrants order by person")
    assert [each[0] for each in listed] == [jobs[1], jobs[3]]
    assert await before.fetchval(moves) > earlier


async def test_a_run_that_was_ranked_by_an_earlier_rule_is_not_called_too_noisy(
    before: Connection,
) -> None:
    job = await stored(before, NOISY)
    await before.execute(SCORE, job)
    await before.execute(FILE.read_text("utf-8"))
    assert not await before.fetchval("select noisy from evaluations")
    assert await before.fetchval("select refused from entrants") is None
