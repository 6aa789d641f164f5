"""The migrations, on databases that nobody has migrated yet."""

import asyncio
import itertools
import re
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest

from bot.domain.errors import SetupError
from bot.domain.scoring import ScoreValue
from bot.domain.submission import Exclusion, ExclusionKind
from bot.store import migrate as module
from bot.store.embedded.programs import INSTALLATION, package_folder
from bot.store.migrate import check, migrate, migrations_folder, read_migrations
from bot.store.postgres import open_store
from runners.contract.verdict import Verdict
from tests.conftest import database_url
from tests.doubles.clock import ManualClock
from tests.doubles.stored import Scene, make_evaluation, set_up

pytestmark = pytest.mark.postgres
_numbers = itertools.count(1)
DUMP = package_folder() / INSTALLATION / "bin" / "pg_dump"


async def execute(dsn: str, statement: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


@pytest.fixture
async def empty_dsn(postgres_server: str) -> AsyncIterator[str]:
    name = f"empty_{next(_numbers)}"
    await execute(postgres_server, f"create database {name} template template0")
    yield database_url(postgres_server, name)
    await execute(postgres_server, f"drop database {name} with (force)")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "0001_first.sql").write_text("create table first (id int);")
    (tmp_path / "0002_second.sql").write_text("create table second (id int);")
    return tmp_path


async def dump(dsn: str) -> list[str]:
    """The schema as pg_dump writes it, without the migrations' own table."""
    process = await asyncio.create_subprocess_exec(
        str(DUMP), "--schema-only", "--exclude-table=schema_migrations", dsn,
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    printed, _ = await process.communicate()
    assert process.returncode == 0
    lines = printed.decode().splitlines()
    return [line for line in lines if not line.startswith(("\\", "--"))]


async def test_the_sum_of_the_migrations_is_schema_sql(postgres_dsn: str, empty_dsn: str) -> None:
    await execute(empty_dsn, (migrations_folder() / "schema.sql").read_text())
    migrated = await dump(postgres_dsn)
    assert migrated == await dump(empty_dsn)
    assert any("CREATE TABLE public.jobs" in line for line in migrated)


async def test_each_migration_is_applied_once(empty_dsn: str, folder: Path) -> None:
    assert await migrate(empty_dsn, folder) == (1, 2)
    assert await migrate(empty_dsn, folder) == ()
    (folder / "0003_third.sql").write_text("create table third (id int);")
    with pytest.raises(SetupError, match="podium migrate"):
        await check(empty_dsn, folder)
    assert await migrate(empty_dsn, folder) == (3,)
    await check(empty_dsn, folder)


async def test_two_that_migrate_at_once_do_it_once(empty_dsn: str, folder: Path) -> None:
    applied = await asyncio.gather(*(migrate(empty_dsn, folder) for _ in range(3)))
    assert sorted(applied) == [(), (), (1, 2)]


async def test_an_edited_file_is_refused(empty_dsn: str, folder: Path) -> None:
    await migrate(empty_dsn, folder)
    (folder / "0001_first.sql").write_text("create table other (id int);")
    with pytest.raises(SetupError, match=r"0001_first\.sql was edited"):
        await migrate(empty_dsn, folder)


async def test_a_database_newer_than_the_code_is_refused(empty_dsn: str, folder: Path) -> None:
    await migrate(empty_dsn, folder)
    (folder / "0002_second.sql").unlink()
    for operation in (migrate, check):
        with pytest.raises(SetupError, match="newer than this Podium"):
            await operation(empty_dsn, folder)


async def test_a_file_that_fails_leaves_nothing_behind(empty_dsn: str, folder: Path) -> None:
    broken = folder / "0003_third.sql"
    broken.write_text("create table third (id int); select no_such_function();")
    with pytest.raises(SetupError, match=r"0003_third\.sql failed.*no_such_function"):
        await migrate(empty_dsn, folder)
    broken.write_text("create table third (id int);")
    assert await migrate(empty_dsn, folder) == (3,)


async def test_a_migration_that_never_ends_elsewhere_is_waited_for_only_so_long(
    empty_dsn: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOCK_DEADLINE_S", 0.3)
    other = await asyncpg.connect(empty_dsn)
    await other.execute(f"select pg_advisory_lock({module.LOCK})")
    with pytest.raises(SetupError, match="another Podium has been migrating"):
        await migrate(empty_dsn, folder)
    await other.close()
    assert await migrate(empty_dsn, folder) == (1, 2)


async def test_a_database_that_stays_silent_is_waited_for_only_so_long(
    empty_dsn: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await migrate(empty_dsn, folder)
    other = await asyncpg.connect(empty_dsn)
    transaction = other.transaction()
    await transaction.start()
    await other.execute("lock table schema_migrations in access exclusive mode")
    monkeypatch.setattr(module, "ANSWER_S", 0.3)
    async with asyncio.timeout(module.CONNECT_S):
        with pytest.raises(SetupError, match="TimeoutError"):
            await check(empty_dsn, folder)
    await transaction.rollback()
    await other.close()
    await check(empty_dsn, folder)


def test_a_gap_in_the_numbers_is_refused(folder: Path) -> None:
    (folder / "0004_fourth.sql").write_text("select 1;")
    with pytest.raises(SetupError, match="without gaps"):
        read_migrations(folder)


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://ada:hunter2@127.0.0.1:1/scores",
        "postgresql://ada:hunter2@/scores?host=/nowhere&port=1",
    ],
)
async def test_an_unreachable_database_is_named_without_its_password(dsn: str) -> None:
    with pytest.raises(SetupError, match=r":1/scores") as refusal:
        await migrate(dsn)
    assert "hunter2" not in str(refusal.value)


@pytest.mark.parametrize("dsn", ["postgresql://ada:hun/ter2@host:12/x", "mysql://a:ter2@h/x"])
async def test_a_url_that_cannot_be_read_is_refused_without_its_password(dsn: str) -> None:
    with pytest.raises(SetupError, match="DATABASE_URL") as refusal:
        await migrate(dsn)
    assert "ter2" not in str(refusal.value)


@pytest.mark.parametrize("change", ["update audit set reason = 'x'", "delete from audit"])
async def test_audit_rows_refuse_every_change(postgres_dsn: str, change: str) -> None:
    await execute(
        postgres_dsn,
        "insert into audit (action, subject, reason, at) values ('a', 'b', 'c', now())",
    )
    with pytest.raises(asyncpg.RestrictViolationError, match="never changed"):
        await execute(postgres_dsn, change)


MADE = re.compile(r"^create (table|function) (\w+)", re.MULTILINE)


async def test_what_was_judged_before_counts_as_what_comes_after(postgres_dsn: str) -> None:
    clock = ManualClock()
    async with open_store(postgres_dsn, clock) as store:
        scene = await set_up(store)
        bob = await store.people.ensure("local:bob", "Bob")
        for place, (person, time_ns) in enumerate(
            ((scene.ada, 9.0), (bob, 7.0), (scene.ada, 8.0), (bob, None), (scene.ada, 1.0))
        ):
            await scene.submit(person)
            clock.advance(place)
            job = await scene.claim_one()
            evaluation = make_evaluation(Verdict.PASSED if time_ns else Verdict.CRASHED)
            evaluation = evaluation.model_copy(update={"wall_s": 0.3 * (place + 1)})
            score = ScoreValue(time_ns, 0.1) if time_ns else None
            assert await store.jobs.accept(job.id, job.fence, evaluation, score)
        newest = max(each.id for each in await store.submissions.to(scene.board.id))
        await store.moderation.exclude(Exclusion(newest, ExclusionKind.WITHDRAWN, ""))
        kept = await _counted(scene)
        text = (migrations_folder() / "0020_operations.sql").read_text("utf-8")
        for kind, name in MADE.findall(text):
            await execute(postgres_dsn, f"drop {kind} {name} cascade")
        await execute(postgres_dsn, text)
        await execute(postgres_dsn, _view_of_names())
        assert await _counted(scene) == kept


def _view_of_names() -> str:
    """The view that a later migration made of these tables, and that was dropped with them."""
    text = (migrations_folder() / "0043_names.sql").read_text("utf-8")
    return text[text.index("create view") :].partition(";")[0]


async def _counted(scene: Scene) -> tuple[object, ...]:
    """Everything that the migration works out from what is there."""
    results, place = scene.store.results, (scene.board.task_version, "CPU")
    entered, refused = await results.entrants(*place), await results.refusals(*place)
    assert [(each.best.person_name, each.attempts) for each in entered] == [("Bob", 1), ("Ada", 2)]
    assert [each.person_name for each in refused] == ["Bob"]
    return entered, refused, await scene.store.operations.tallies()
