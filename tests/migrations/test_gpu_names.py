"""GPU types that were stored under several names of one card get one."""

import re
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TypeAlias

import asyncpg
import pytest

from bot.store.migrate import migrate, migrations_folder
from runners.contract.gpus import GPU_TYPES, gpu_type
from tests.conftest import database_url

pytestmark = pytest.mark.postgres
NAME = "0027_one_name_of_each_gpu_type.sql"
Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

# 1 ran on both names of an A100, faster under the old one; 2 on both, faster under the new one; 3
# under the old one alone, 4 waits under both, 5 did not pass; 6 and 7 are of cards of their own.
STORED = """
insert into people (identity, name, created_at) select 'local:' || name, name, now()
from unnest(array['ada', 'bob', 'eve']) as name;
insert into boards (name, gpus, creator, created_at) values
    ('sums', array['A100-40GB', 'L4', 'A100', 'H100!', 'NVIDIA'], 1, now()),
    ('dots', array['MI300x8', 'B200_Nebius', 'RTX-4090'], 1, now());
insert into task_versions (board, number, digest, definition, created_at)
values (1, 1, 'x', '{}', now()), (2, 1, 'y', '{}', now());
insert into sources values (repeat('a', 64), 'x');
insert into submissions (person, board, task_version, file_name, source, mode, gpus, created_at)
select person, board, board, 'k.py', repeat('a', 64), 'ranked', gpus::text[],
    '2026-01-01'::timestamptz + id * interval '1 h'
from (values
    (1, 1, 1, '{A100-40GB,A100,L4}'), (2, 2, 1, '{A100,A100-40GB}'), (3, 3, 1, '{A100-40GB}'),
    (4, 1, 1, '{A100,A100-40GB}'), (5, 2, 1, '{H100!}'), (6, 1, 2, '{MI300x8,B200_Nebius}'),
    (7, 2, 1, '{NVIDIA}')) as given (id, person, board, gpus) order by id;
insert into pools (gpu, max_running, paused, notice) values
    ('A100', 2, false, null), ('A100-40GB', 5, true, 'broken'), ('L4', null, false, null),
    ('H100!', null, false, null), ('MI300x8', 1, false, null), ('B200_Nebius', null, false, null),
    ('NVIDIA', null, false, null);
insert into present_turns values ('A100', 0, 3), ('A100-40GB', 0, 9), ('H100!', 0, 2);
insert into jobs (submission, person, gpu, mode, priority, turn, state, max_attempts, run_at,
    created_at, moved_at, finished_at, started_at)
select submissions.id, person, gpu, 'ranked', 0, 1,
    case when submissions.id = 4 then 'queued' else 'succeeded' end, 3, now(), now(), now(),
    case when submissions.id <> 4 then now() end, now()
from submissions, unnest(gpus) with ordinality as listed (gpu, place)
order by submissions.id, place;
insert into evaluations (job, submission, task_version, gpu, verdict, message, wall_s, evaluation,
    at, used_s)
select jobs.id, submission, task_version, gpu,
    case when submission = 5 then 'crashed' else 'passed' end, '', 1, '{}', now(), 1
from jobs join submissions on submissions.id = submission where state = 'succeeded';
insert into scores
select job, evaluations.submission, task_version, evaluations.gpu, time_ns, 1
from evaluations join (values
    (1, 'A100-40GB', 50), (1, 'A100', 60), (1, 'L4', 900), (2, 'A100', 40), (2, 'A100-40GB', 45),
    (3, 'A100-40GB', 30), (6, 'MI300x8', 7), (6, 'B200_Nebius', 8), (7, 'NVIDIA', 70)
) as given (submission, gpu, time_ns)
    on (given.submission, given.gpu) = (evaluations.submission, evaluations.gpu);
insert into reference_times (task_version, gpu, time_ns, half_width_ns, machine, at) values
    (1, 'A100', 90, 1, 'm', now()), (1, 'A100-40GB', 80, 1, 'm', now()),
    (1, 'H100!', 70, 1, 'm', now());
insert into lost_leases values ('A100', 1), ('A100-40GB', 2), ('H100!', 4);
"""


@pytest.fixture
async def stored(postgres_server: str, tmp_path: Path) -> AsyncIterator[Connection]:
    """A database of before, with what was stored in it."""
    for file in migrations_folder().glob("0*.sql"):
        if file.name < NAME:
            shutil.copy(file, tmp_path)
    server = await asyncpg.connect(postgres_server)
    await server.execute("create database of_before template template0")
    dsn = database_url(postgres_server, "of_before")
    await migrate(dsn, tmp_path)
    connection = await asyncpg.connect(dsn)
    await connection.execute(STORED)
    yield connection
    await connection.close()
    await server.execute("drop database of_before with (force)")
    await server.close()


async def rename(connection: Connection) -> None:
    await connection.execute((migrations_folder() / NAME).read_text("utf-8"))


async def rows(connection: Connection, query: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in await connection.fetch(query)]


async def test_scores_of_one_card_meet_and_none_is_lost(stored: Connection) -> None:
    before = await rows(stored, "select job, time_ns from scores order by job")
    await rename(stored)
    assert await rows(stored, "select job, time_ns from scores order by job") == before
    scores = "select submission, gpu, time_ns from scores order by submission, gpu"
    assert await rows(stored, scores) == [
        (1, "A100", 50),
        (1, "A100-40GB", 60),
        (1, "L4", 900),
        (2, "A100", 40),
        (2, "A100-40GB", 45),
        (3, "A100", 30),
        (6, "B200_Nebius", 8),
        (6, "MI300X", 7),
        (7, "NVIDIA", 70),
    ]
    other = """
        select 1 from jobs left join evaluations on evaluations.job = jobs.id
        left join scores on scores.job = jobs.id
        where jobs.gpu <> evaluations.gpu or jobs.gpu <> scores.gpu"""
    assert await rows(stored, other) == []


async def test_the_standings_are_those_of_the_one_card(stored: Connection) -> None:
    (moves,) = await rows(stored, "select max(moves) from leaderboards where gpu like 'A100%'")
    await rename(stored)
    entered = """
        select name, attempts, time_ns, refused from entrants join people on people.id = person
        left join scores on job = best
        where entrants.task_version = 1 and entrants.gpu = $1 order by time_ns"""
    found = [tuple(row) for row in await stored.fetch(entered, "A100")]
    assert found == [("eve", 1, 30, None), ("bob", 1, 40, None), ("ada", 1, 50, None)]
    refused = await stored.fetch(entered, "H100")
    assert [(row["name"], row["refused"] is not None) for row in refused] == [("bob", True)]
    records = "select submission, time_ns from records where gpu = 'A100' order by submitted_at"
    assert await rows(stored, records) == [(1, 50), (2, 40), (3, 30)]
    moved = "select moves from leaderboards where (task_version, gpu) = (1, 'A100')"
    assert (await rows(stored, moved))[0] > moves
    assert await rows(stored, "select 1 from leaderboards where gpu in ('H100!', 'MI300x8')") == []


async def test_boards_and_submissions_name_each_card_once(stored: Connection) -> None:
    await rename(stored)
    assert await rows(stored, "select gpus from boards order by id") == [
        (["A100", "L4", "H100", "NVIDIA"],),
        (["MI300X", "B200_Nebius", "RTX-4090"],),
    ]
    assert await rows(stored, "select gpus from submissions order by id") == [
        (["A100", "L4", "A100-40GB"],),
        (["A100", "A100-40GB"],),
        (["A100"],),
        (["A100", "A100-40GB"],),
        (["H100"],),
        (["MI300X", "B200_Nebius"],),
        (["NVIDIA"],),
    ]


async def test_what_waits_for_one_card_twice_waits_once(stored: Connection) -> None:
    await rename(stored)
    waiting = "select gpu, state from jobs where submission = 4 order by gpu"
    assert await rows(stored, waiting) == [("A100", "queued"), ("A100-40GB", "cancelled")]
    events = """
        select body::json ->> 'gpu', kind from job_events where submission = 3
        union all (select body::json ->> 'gpu', kind from job_events
            where submission = 4 order by id desc limit 1)"""
    told = await rows(stored, events)
    assert told == [("A100", "succeeded"), ("A100-40GB", "cancelled")]


async def test_what_is_kept_of_each_card_is_added_up(stored: Connection) -> None:
    counted = "select sum(evaluations), sum(judged[2]), sum(judged_s) from tallies"
    before = await rows(stored, counted)
    await rename(stored)
    assert await rows(stored, counted) == before
    names = "select gpu, sum(evaluations)::int from tallies group by 1 order by 1"
    assert dict(await rows(stored, names)) == {  # type: ignore[arg-type]
        "A100": 5, "B200_Nebius": 1, "H100": 1, "L4": 1, "MI300X": 1, "NVIDIA": 1,
    }  # fmt: skip
    shapes = "select distinct cardinality(judged), cardinality(waited) from tallies"
    assert await rows(stored, shapes) == [(13, 13)]
    lost = "select gpu, jobs from lost_leases order by gpu"
    assert await rows(stored, lost) == [("A100", 3), ("H100", 4)]
    turns = "select gpu, turn from present_turns order by gpu"
    assert await rows(stored, turns) == [("A100", 9), ("H100", 2)]
    pools = "select max_running, paused, notice from pools where gpu = 'A100'"
    assert await rows(stored, pools) == [(5, True, "broken")]
    gone = "select gpu from pools where gpu in ('?', 'H100!', 'MI300x8')"
    assert await rows(stored, gone) == []
    timed = "select gpu, time_ns from reference_times order by gpu"
    assert await rows(stored, timed) == [("A100", 80), ("H100", 70)]


async def test_a_database_that_has_the_names_stays_as_it_is(stored: Connection) -> None:
    await rename(stored)
    once = "select id, gpu, state, moved_at from jobs order by id"
    listed = "select id, gpus from submissions"
    kept = await rows(stored, once), await rows(stored, f"{listed} order by id")
    await rename(stored)
    again = await rows(stored, once), await rows(stored, f"{listed} order by id")
    assert again == kept


def test_the_migration_knows_every_name_of_the_table() -> None:
    text = (migrations_folder() / NAME).read_text("utf-8")
    pairs = dict(re.findall(r"\('([^']+)', '([^']+)'\)", text))
    for card in GPU_TYPES.values():
        for name in filter(None, (card.name, card.modal, *card.aliases)):
            assert pairs[name.lower()] == card.name == gpu_type(name)
