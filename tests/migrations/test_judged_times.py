"""Results that were stored by their claims count by the judge's own times."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TypeAlias

import asyncpg
import pytest

from bot.domain.scoring import ScoreValue, score
from bot.store.migrate import migrate, migrations_folder
from runners.contract.evaluation import CaseKind, Evaluation, Measurement, StopReason
from runners.contract.task import RankingBy
from tests.conftest import database_url
from tests.doubles.factories import make_case, make_evaluation, make_measurement, make_task

pytestmark = pytest.mark.postgres
(FILE,) = migrations_folder().glob("*_judged_times.sql")
Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

PEOPLE = """
insert into people (identity, name, created_at)
values ('local:ada', 'ada', now()), ('local:bob', 'bob', now());
insert into boards (name, gpus, creator, created_at) values ('sums', array['L4'], 1, now());
insert into sources values (repeat('a', 64), 'x');
insert into pools (gpu) values ('L4');
"""
SUBMISSION = """
with made as (
    insert into submissions (person, board, task_version, file_name, source, mode, gpus, created_at)
    values ($1, 1, $2, 'k.py', repeat('a', 64), 'ranked', array['L4'], now()) returning id
), queued as (
    insert into jobs (submission, person, gpu, mode, priority, turn, max_attempts, run_at,
        created_at, moved_at, state, finished_at)
    select id, $1, 'L4', 'ranked', 10, 1, 3, now(), now(), now(), 'succeeded', now() from made
    returning id, submission
)
select id, submission from queued
"""
EVALUATION = """
insert into evaluations (job, submission, task_version, gpu, verdict, message, wall_s, evaluation,
    at, used_s)
values ($1, $2, $3, 'L4', 'passed', '', 1, $4, now(), 1)
"""


def measured(**changes: object) -> Measurement:
    return make_measurement(5_800.0, 20.0).model_copy(
        update={"claimed_ns": 5_800.0, "rounds": 5, "resolution_ns": 900.0, **changes}
    )


HONEST = measured()
LIE = measured(time_ns=2_800.0, claimed_ns=2_800.0, bound_ns=5_870.0, resolution_ns=4_140.0)
BY_WINDOWS = measured(claimed_ns=None, time_ns=9_000.0, bound_ns=5_000.0)
CUT_SHORT = measured(stop_reason=StopReason.TIME_CAP, rounds=1)
SLOW = measured(stop_reason=StopReason.SLOW, rounds=2)
REPORTED = measured(bound_ns=0.0, stop_reason=StopReason.TASK)


@pytest.fixture
async def before(postgres_server: str, tmp_path: Path) -> AsyncIterator[Connection]:
    """A database of before, with people and a board but no results."""
    for file in migrations_folder().glob("0*.sql"):
        if file.name < FILE.name:
            shutil.copy(file, tmp_path)
    server = await asyncpg.connect(postgres_server)
    await server.execute("create database judged_times template template0")
    dsn = database_url(postgres_server, "judged_times")
    await migrate(dsn, tmp_path)
    connection = await asyncpg.connect(dsn)
    await connection.execute(PEOPLE)
    yield connection
    await connection.close()
    await server.execute("drop database judged_times with (force)")
    await server.close()


async def version(before: Connection, number: int, ranking_by: RankingBy) -> None:
    definition = make_task(ranking_by=ranking_by, description="a\0b").model_dump_json()
    await before.execute(
        "insert into task_versions (board, number, digest, definition, created_at)"
        " values (1, $1, 'x', $2, now())",
        number,
        definition,
    )


def evaluation(*times: Measurement) -> Evaluation:
    cases = [make_case(CaseKind.BENCHMARK, measurement=each) for each in times]
    return make_evaluation(cases=(make_case(message="a\0b"), *cases), gpu="L4", log="\0 \\u0000 \\")


async def stored(
    before: Connection, person: int, found: Evaluation, in_version: int = 1
) -> tuple[int, int]:
    """Store a result as before: with the time that it reported."""
    ((job, submission),) = await before.fetch(SUBMISSION, person, in_version)
    await before.execute(EVALUATION, job, submission, in_version, found.model_dump_json())
    times = [each.measurement.time_ns for each in found.cases if each.measurement is not None]
    await before.execute(
        "insert into scores (job, submission, task_version, gpu, time_ns, half_width_ns)"
        " values ($1, $2, $3, 'L4', $4, 20)",
        job,
        submission,
        in_version,
        times[-1],
    )
    return job, submission


async def value(connection: Connection, job: int) -> ScoreValue:
    (row,) = await connection.fetch("select * from scores where job = $1", job)
    return ScoreValue(*(row[name] for name in ScoreValue.__slots__))


@pytest.mark.parametrize("ranking_by", RankingBy)
@pytest.mark.parametrize(
    "times",
    [
        (HONEST, LIE),
        (LIE, BY_WINDOWS),
        (HONEST, CUT_SHORT),
        (SLOW, HONEST),
        (measured(claimed_ns=-1.0), HONEST),
    ],
    ids=["claims", "windows", "cut short", "slow", "an impossible claim"],
)
async def test_a_score_of_before_counts_as_one_of_today(
    before: Connection, times: tuple[Measurement, ...], ranking_by: RankingBy
) -> None:
    await version(before, 1, ranking_by)
    found = evaluation(*times)
    job, _ = await stored(before, 1, found)
    await before.execute(FILE.read_text("utf-8"))
    today = score(make_task(ranking_by=ranking_by), found)
    assert today is not None
    migrated = await value(before, job)
    for name in ScoreValue.__slots__:
        expected = getattr(today, name)
        assert getattr(migrated, name) == (expected and pytest.approx(expected)), name


async def test_what_no_clock_of_the_judge_confirms_stays_and_is_unconfirmed(
    before: Connection,
) -> None:
    await version(before, 1, RankingBy.MEAN)
    job, _ = await stored(before, 1, evaluation(HONEST, REPORTED))
    await before.execute(FILE.read_text("utf-8"))
    assert await value(before, job) == ScoreValue(5_800, 20, None)


async def test_the_best_of_a_person_and_the_records_follow_the_times_that_count(
    before: Connection,
) -> None:
    await version(before, 1, RankingBy.LAST)
    _, first = await stored(before, 1, evaluation(measured(bound_ns=8_000.0)))
    _, lie = await stored(before, 2, evaluation(LIE))
    honest, last = await stored(before, 2, evaluation(HONEST))
    records = "select submission from records order by submission"
    assert [each[0] for each in await before.fetch(records)] == [first, lie]
    await before.execute(FILE.read_text("utf-8"))
    assert [each[0] for each in await before.fetch(records)] == [first, last]
    best = await before.fetchval("select best from entrants where person = 2")
    assert best == honest


async def test_a_reference_of_before_has_the_judges_own_time(before: Connection) -> None:
    await version(before, 1, RankingBy.LAST)
    ((job, submission),) = await before.fetch(SUBMISSION, 1, 1)
    await before.execute(EVALUATION, job, submission, 1, evaluation(LIE).model_dump_json())
    await before.execute(
        "insert into reference_times (task_version, gpu, submission, time_ns, half_width_ns,"
        " machine, at) values (1, 'L4', $1, 2800, 20, 'x', now())",
        submission,
    )
    await before.execute(FILE.read_text("utf-8"))
    (row,) = await before.fetch("select * from reference_times")
    assert ScoreValue(*(row[name] for name in ScoreValue.__slots__)) == ScoreValue(
        5_870, 20, 4_140, 2_800
    )
