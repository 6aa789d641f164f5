"""Boards with runs on the CPU get their reference's usual time: the median of those runs."""

import shutil
from pathlib import Path

import asyncpg
import pytest

from bot.store.migrate import migrate, migrations_folder
from runners.contract.comparison import Ratio
from runners.contract.evaluation import CaseKind, Evaluation
from tests.conftest import database_url
from tests.doubles.factories import make_case, make_evaluation, make_measurement
from tests.migrations.test_judged_times import PEOPLE
from tests.migrations.test_noisy_runs import SUBMISSION

pytestmark = pytest.mark.postgres
(FILE,) = migrations_folder().glob("*_usual_references.sql")
BOARD = """
insert into pools (gpu) values ('CPU');
insert into task_versions (board, number, digest, definition, created_at)
values (1, 1, 'x', '{}', now());
"""
SCORE = """
insert into scores (
    job, submission, task_version, gpu, time_ns, half_width_ns,
    reference_ratio, reference_half_width
)
select job, submission, task_version, gpu, 1000000, 1, 0.5, 0.01 from evaluations where job = $1
"""


def run(*times_ns: float) -> Evaluation:
    """A run with these times, half of the reference's."""
    half = {"vs_reference": Ratio(ratio=0.5, half_width=0.01, rounds=5)}
    timed = [make_measurement(each).model_copy(update=half) for each in times_ns]
    benchmarks = [make_case(CaseKind.BENCHMARK, measurement=each) for each in timed]
    return make_evaluation(cases=(make_case(message="a\0b"), *benchmarks), log="\0 \\u0000 \\")


async def test_the_usual_time_of_a_board_with_runs_is_their_median(
    postgres_server: str, tmp_path: Path
) -> None:
    for file in migrations_folder().glob("0*.sql"):
        if file.name < FILE.name:
            shutil.copy(file, tmp_path)
    server = await asyncpg.connect(postgres_server)
    await server.execute("create database usual_references template template0")
    dsn = database_url(postgres_server, "usual_references")
    await migrate(dsn, tmp_path)
    connection = await asyncpg.connect(dsn)
    await connection.execute(PEOPLE + BOARD)
    for evaluation in (run(1e6, 5e6), run(2e6, 6e6), run(9e6, 7e6)):
        values = 1, evaluation.mode.value, "CPU", "passed", evaluation.model_dump_json()
        await connection.execute(SCORE, await connection.fetchval(SUBMISSION, *values))

    await connection.execute(FILE.read_text("utf-8"))

    found = await connection.fetch("select * from usual_references")
    assert [(each["task_version"], each["times_ns"]) for each in found] == [(1, [4e6, 12e6])]
    await connection.close()
    await server.execute("drop database usual_references with (force)")
    await server.close()
