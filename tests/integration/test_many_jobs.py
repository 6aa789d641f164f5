"""What is asked of a queue with a long past reads little of it, as Postgres itself counts."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import asyncpg
import pytest

from bot.domain.board import NewBoard
from bot.store.postgres import PostgresStore
from tests.benchmarks.queue import FILL
from tests.doubles.stored import Scene, make_task, set_up

pytestmark = pytest.mark.postgres

PAST = 5_000
DOOMED = 200
END = "update jobs set state = 'succeeded', finished_at = now() where state = 'queued'"
UNTIMED = """
with made as (
    insert into task_versions (board, number, digest, definition, created_at)
    select $1, 1 + n, 'd' || n, definition, created_at
    from task_versions, generate_series(1, 500) as n where board = $1 and number = 1
    returning id
)
insert into reference_times (task_version, gpu) select id, 'CPU' from made
"""
READ = "select coalesce(sum(seq_tup_read), 0) from pg_stat_user_tables where relname = $1"


@pytest.fixture
async def scene(postgres_store: PostgresStore) -> Scene:
    return await set_up(postgres_store)


@pytest.fixture
async def server(
    postgres_dsn: str, scene: Scene
) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
    """A connection to the database, in which many jobs of the scene's board have ended."""
    await scene.submit()
    connection = await asyncpg.connect(postgres_dsn)
    try:
        await fill(connection, scene, PAST)
        await connection.execute(UNTIMED, scene.board.id)
        await connection.execute("vacuum analyze")
        yield connection
    finally:
        await connection.close()


async def fill(connection: "asyncpg.Connection[asyncpg.Record]", scene: Scene, number: int) -> None:
    board = scene.board
    await connection.execute(FILL, [scene.ada.id], board.id, board.task_version, number)
    await connection.execute(END)


async def rows_read(
    connection: "asyncpg.Connection[asyncpg.Record]", scene: Scene, table: str
) -> int:
    """Rows that every session has read from a table from end to end."""
    await asyncio.sleep(1.2)
    await scene.store.boards.all()  # a session hands in its counts when it is asked a second later
    return int(await connection.fetchval(READ, table))


async def test_what_is_asked_every_few_seconds_and_at_a_ban_reads_no_ended_job(
    server: "asyncpg.Connection[asyncpg.Record]", scene: Scene
) -> None:
    before = await rows_read(server, scene, "jobs")
    assert await scene.store.references.delete_given_up(timedelta(days=1)) == 0
    assert await scene.store.references.record_failures() == ()
    assert await scene.store.jobs.unfinished_of(scene.ada.id) == ()
    assert await rows_read(server, scene, "jobs") - before < PAST


async def test_a_board_is_deleted_without_reading_every_event_for_each_of_its_jobs(
    server: "asyncpg.Connection[asyncpg.Record]", scene: Scene
) -> None:
    new = NewBoard("doomed", ("CPU",), None, scene.ada.id)
    board = await scene.store.boards.publish(new, make_task("doomed"), "digest-d")
    await fill(server, Scene(scene.store, board, scene.ada), DOOMED)
    before = await rows_read(server, scene, "job_events")
    assert await scene.store.boards.delete(board.id, DOOMED)
    assert await rows_read(server, scene, "job_events") - before < 10 * PAST
