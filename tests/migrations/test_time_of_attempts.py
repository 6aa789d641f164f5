"""A job that was stored before its attempts shared a time limit has used none of it."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TypeAlias

import asyncpg
import pytest

from bot.store.migrate import migrate, migrations_folder
from tests.conftest import database_url

pytestmark = pytest.mark.postgres
(FILE,) = migrations_folder().glob("*_time_of_attempts.sql")
Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

STORED = """
insert into people (identity, name, created_at) values ('local:ada', 'ada', now());
insert into boards (name, gpus, creator, created_at) values ('sums', array['L4'], 1, now());
insert into task_versions (board, number, digest, definition, created_at)
values (1, 1, 'x', '{}', now());
insert into sources values (repeat('a', 64), 'x');
insert into submissions (person, board, task_version, file_name, source, mode, gpus, created_at)
values (1, 1, 1, 'k.py', repeat('a', 64), 'ranked', array['L4'], now());
insert into pools (gpu) values ('L4');
insert into jobs (submission, person, gpu, mode, priority, turn, attempt, max_attempts, run_at,
    created_at, moved_at)
values (1, 1, 'L4', 'ranked', 10, 1, 2, 3, now(), now(), now());
"""


@pytest.fixture
async def stored(postgres_server: str, tmp_path: Path) -> AsyncIterator[Connection]:
    """A database of before, with a job that has been tried twice."""
    for file in migrations_folder().glob("0*.sql"):
        if file.name < FILE.name:
            shutil.copy(file, tmp_path)
    server = await asyncpg.connect(postgres_server)
    await server.execute("create database of_attempts template template0")
    dsn = database_url(postgres_server, "of_attempts")
    await migrate(dsn, tmp_path)
    connection = await asyncpg.connect(dsn)
    await connection.execute(STORED)
    yield connection
    await connection.close()
    await server.execute("drop database of_attempts with (force)")
    await server.close()


async def test_a_job_of_before_has_used_nothing(stored: Connection) -> None:
    await stored.execute(FILE.read_text("utf-8"))
    (row,) = await stored.fetch("select attempt, used_s from jobs")
    assert tuple(row) == (2, 0.0)


async def test_no_attempt_gives_time_back(stored: Connection) -> None:
    await stored.execute(FILE.read_text("utf-8"))
    with pytest.raises(asyncpg.CheckViolationError):
        await stored.execute("update jobs set used_s = -1")
