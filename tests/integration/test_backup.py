"""A backup is restored, and everything is there again."""

import asyncio
import errno
import fcntl
import io
import itertools
import json
import os
import shutil
import zipfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import asyncpg
import pytest

from bot.domain.accounts import Person
from bot.domain.board import Viewer
from bot.domain.errors import SetupError, UserError
from bot.domain.records import InteractionRequest
from bot.domain.scoring import ScoreValue
from bot.ports import Store
from bot.services.standings import board_standings
from bot.store.backup import archive, dump, load, seekable
from bot.store.backup.archive import BackupReader
from bot.store.migrate import migrate, migrations_folder, read_migrations
from bot.store.postgres import open_store
from runners.contract.files import EvaluationFile
from runners.contract.task import Mode
from tests.conftest import database_url
from tests.doubles.clock import ManualClock
from tests.doubles.dispatching import until
from tests.doubles.stored import Scene, make_evaluation, set_up
from tests.e2e.command import Podium

pytestmark = pytest.mark.postgres
_numbers = itertools.count(1)
ODD = 'print("\\t\\\\N\\n")  # \x00 \udcff \u2603'
"""What a text format could trip over: tabs, its own escapes, a NUL, a lone surrogate."""


async def fetch(dsn: str, statement: str) -> list[asyncpg.Record]:
    connection = await asyncpg.connect(dsn)
    try:
        return await connection.fetch(statement)
    finally:
        await connection.close()


@pytest.fixture
async def empty_dsn(postgres_server: str) -> AsyncIterator[str]:
    name = f"restored_{next(_numbers)}"
    await fetch(postgres_server, f"create database {name} template template0")
    yield database_url(postgres_server, name)
    await fetch(postgres_server, f"drop database {name} with (force)")


@pytest.fixture
async def lived_in(postgres_dsn: str, clock: ManualClock) -> str:
    """A database in which something of everything has happened."""
    async with open_store(postgres_dsn, clock) as store:
        scene = await set_up(store)
        bob = await store.people.ensure("local:bob", 'Bob "the\tbuilder"')
        for person, time_ns in ((scene.ada, 900.0), (bob, 700.0), (scene.ada, 800.0)):
            await _judged(scene, person, time_ns)
        await scene.submit(source=ODD)
        await scene.submit(mode=Mode.TEST)
        await scene.claim(1)
        await store.audit.record(scene.ada.id, "ban", "person bob", "for the test")
        await store.tokens.add(bob.id, "a" * 64, "laptop")
    return postgres_dsn


async def _judged(scene: Scene, person: Person, time_ns: float) -> None:
    await scene.submit(person)
    job = await scene.claim_one()
    report = EvaluationFile.of("report.txt", bytes(range(256)))
    evaluation = make_evaluation().model_copy(update={"files": (report,)})
    score = ScoreValue(time_ns, 1.0)
    assert await scene.store.jobs.accept(job.id, job.fence, evaluation, score)


async def everything(dsn: str) -> dict[str, list[str]]:
    """Every row of every table as text, and the place of every sequence."""
    names = [
        row["tablename"]
        for row in await fetch(dsn, "select tablename from pg_tables where schemaname = 'public'")
    ]
    found = {
        name: [
            row["text"]
            for row in await fetch(
                dsn,
                f"select each::text as text from {name} as each order by each::text",  # noqa: S608
            )
        ]
        for name in names
    }
    del found["schema_migrations"]
    sequences = "select sequencename, last_value from pg_sequences order by 1"
    found["sequences"] = [str(tuple(row)) for row in await fetch(dsn, sequences)]
    return found


async def schema_of(dsn: str) -> list[tuple[object, ...]]:
    """Constraints and triggers, which a restore takes away for a while."""
    constraints = "select conname, pg_get_constraintdef(oid) from pg_constraint order by 1, 2"
    triggers = "select tgname, tgenabled from pg_trigger where not tgisinternal order by 1"
    return [tuple(row) for each in (constraints, triggers) for row in await fetch(dsn, each)]


async def test_what_was_backed_up_is_there_again_and_works(
    lived_in: str, empty_dsn: str, clock: ManualClock, tmp_path: Path
) -> None:
    file = tmp_path / "podium.backup"
    made = await dump(lived_in, file, "1.2.3")
    assert file.stat().st_mode & 0o777 == 0o600
    assert (made.rows["submissions"], made.rows["scores"], made.rows["evaluation_files"]) == (
        5, 3, 3,
    )  # fmt: skip
    assert await load(empty_dsn, file) == made
    assert await everything(empty_dsn) == await everything(lived_in)
    assert await schema_of(empty_dsn) == await schema_of(lived_in)
    async with open_store(empty_dsn, clock) as store:
        await _goes_on(store)


async def test_a_backup_goes_through_pipes(lived_in: str, empty_dsn: str, tmp_path: Path) -> None:
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as arriving:
        collecting = asyncio.create_task(asyncio.to_thread(arriving.read))
        with os.fdopen(writer, "wb") as leaving:
            made = await dump(lived_in, leaving, "1.2.3")
        whole = await collecting
    data_dir = tmp_path / "data"
    with (
        seekable(io.BytesIO(whole[:-100]), data_dir) as broken_off,
        pytest.raises(UserError, match="is not a backup, or it is damaged"),
    ):
        await load(empty_dsn, broken_off)
    with seekable(io.BytesIO(whole), data_dir) as file:
        assert not list(data_dir.iterdir())  # nobody else can open it, and nothing stays of it
        assert await load(empty_dsn, file) == made
    assert await everything(empty_dsn) == await everything(lived_in)


async def _goes_on(store: Store) -> None:
    """The restored Podium ranks, has the queue, and takes submissions in."""
    board = await store.boards.find("vectoradd")
    ada = await store.people.find("local:ada")
    assert board is not None
    assert ada is not None
    scene = Scene(store, board, ada)
    [found] = await board_standings(store, Viewer(ada.id), "vectoradd")
    assert [(each.score.person_name, each.rank) for each in found.entries] == [
        ('Bob "the\tbuilder"', 1), ("Ada", 2),
    ]  # fmt: skip
    assert await store.submissions.source((await store.submissions.to(board.id))[3].id) == ODD
    new = await scene.submit()
    assert new.id == 6
    assert {job.submission for job in await scene.claim(5)} >= {new.id}


async def test_what_people_asked_on_discord_and_its_tokens_are_in_no_backup(
    lived_in: str, empty_dsn: str, clock: ManualClock, tmp_path: Path
) -> None:
    async with open_store(lived_in, clock) as store:
        asked = InteractionRequest("discord:1", "discord", "{}", "a-token-of-discord", clock.now())
        assert await store.interactions.claim(asked, "one", timedelta(seconds=30))
    made = await dump(lived_in, tmp_path / "b", "")
    assert made.rows["interactions"] == 0
    with zipfile.ZipFile(tmp_path / "b") as archived:
        assert not any(b"a-token" in archived.read(name) for name in archived.namelist())
    await load(empty_dsn, tmp_path / "b")
    assert await fetch(empty_dsn, "select * from interactions") == []


async def test_a_backup_of_a_database_in_use_is_of_one_moment(
    lived_in: str, empty_dsn: str, clock: ManualClock, tmp_path: Path
) -> None:
    async with open_store(lived_in, clock) as store:
        board = await store.boards.find("vectoradd")
        ada = await store.people.find("local:ada")
        assert board is not None
        assert ada is not None
        scene = Scene(store, board, ada)
        writing = asyncio.create_task(_submit_without_end(scene))
        made = await dump(lived_in, tmp_path / "b", "")
        writing.cancel()
    await load(empty_dsn, tmp_path / "b")  # its keys would not hold were it of two moments
    assert made.rows["jobs"] == made.rows["submissions"]


async def _submit_without_end(scene: Scene) -> None:
    while True:
        await scene.submit()


async def test_what_is_there_is_overwritten_by_force_alone_and_never_under_a_podium(
    lived_in: str, clock: ManualClock, tmp_path: Path
) -> None:
    file = tmp_path / "b"
    await dump(lived_in, file, "")
    with pytest.raises(UserError, match="name another"):
        await dump(lived_in, file, "")
    before = await everything(lived_in)
    with pytest.raises(UserError, match="--force"):
        await load(lived_in, file)
    async with open_store(lived_in, clock):
        with pytest.raises(SetupError, match="stop it first"):
            await load(lived_in, file, force=True)
    await fetch(lived_in, "create table invoices (id int)")
    with pytest.raises(UserError, match="invoices"):
        await load(lived_in, file, force=True)
    await fetch(lived_in, "drop table invoices")
    assert await everything(lived_in) == before
    await fetch(lived_in, "update people set name = 'x'")
    await load(lived_in, file, force=True)
    assert await everything(lived_in) == before


async def test_a_restore_that_is_cut_short_leaves_what_there_was(
    lived_in: str, empty_dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "b"
    await dump(lived_in, file, "")
    chunks = BackupReader.chunks

    def killed(self: BackupReader, table: str) -> Iterator[bytes]:
        if table == "submissions" and "people" in copied:
            raise asyncio.CancelledError
        copied.append(table)
        return chunks(self, table)

    copied: list[str] = []
    with monkeypatch.context() as patched:
        patched.setattr(BackupReader, "chunks", killed)
        patched.setattr(archive, "_check", lambda *_: None)
        with pytest.raises(asyncio.CancelledError):
            await load(empty_dsn, file)
    assert await fetch(empty_dsn, "select * from pg_tables where schemaname = 'public'") == []
    await load(empty_dsn, file)
    assert await everything(empty_dsn) == await everything(lived_in)


HALT = """
create function halt() returns event_trigger language plpgsql as $$ begin
    if to_regclass('sources') is not null then
        if exists (select from sources) and tg_tag = 'ALTER TABLE'
            and not exists (select from pg_constraint where contype = 'f')
        then perform pg_advisory_xact_lock(4711); end if;
    end if;
end $$;
create event trigger halt on ddl_command_start execute function halt();
"""
"""Has a restore wait, as for somebody's lock, once all rows are there and nothing joins them."""


@asynccontextmanager
async def locked(dsn: str, statement: str) -> AsyncIterator[None]:
    """What the statement locks, for whoever wants it next."""
    holder = await asyncpg.connect(dsn)
    try:
        async with holder.transaction():
            await holder.execute(statement)
            yield
    finally:
        await holder.close()


async def killed_while_it_waits(dsn: str, folder: Path, *arguments: str | Path) -> None:
    """The command, killed as soon as the database has it wait; gone with all that it locked."""
    with Podium(folder, DATABASE_URL=dsn).start(*arguments) as process:
        await until(lambda: _waits(dsn), 60)
        process.kill()

    async def gone() -> bool:
        return not await _waits(dsn)

    await until(gone, 30)


async def _waits(dsn: str) -> bool:
    """Whether anybody there waits for a lock."""
    statement = """
        select from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'
    """
    return bool(await fetch(dsn, statement))


async def test_a_restore_that_is_killed_leaves_what_there_was_and_is_done_again(
    lived_in: str, tmp_path: Path
) -> None:
    file = tmp_path / "b"
    await dump(lived_in, file, "")
    await fetch(lived_in, "update people set name = 'later'")
    before = await everything(lived_in)
    async with locked(lived_in, HALT):
        pass
    async with locked(lived_in, "select pg_advisory_xact_lock(4711)"):
        await killed_while_it_waits(lived_in, tmp_path, "restore", file, "--force")
        await fetch(lived_in, "drop event trigger halt")
        assert await everything(lived_in) == before
        await load(lived_in, file, force=True)
    [ada] = await fetch(lived_in, "select name from people where identity = 'local:ada'")
    assert ada["name"] == "Ada"


async def test_a_backup_that_is_killed_leaves_nothing_that_looks_whole(
    lived_in: str, tmp_path: Path
) -> None:
    file, partial = tmp_path / "b", tmp_path / "b.partial"
    async with locked(lived_in, "lock table jobs in access exclusive mode"):
        await killed_while_it_waits(lived_in, tmp_path, "backup", file)
    assert (file.exists(), partial.exists()) == (False, True)
    partial.write_bytes(b"PK and some of the rest" * 100_000)
    with pytest.raises(UserError, match="is not a backup"):
        await load(lived_in, partial, force=True)
    with partial.open("r+b") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(UserError, match="another backup is writing it"):
            await dump(lived_in, file, "")
    made = await dump(lived_in, file, "")
    assert not partial.exists()
    with archive.opened(file) as whole:
        assert whole.manifest.contents == made


async def test_a_backup_is_written_into_no_file_of_a_stranger(
    lived_in: str, tmp_path: Path
) -> None:
    (tmp_path / "b.partial").symlink_to(tmp_path / "precious")
    with pytest.raises(SetupError, match="cannot write"):
        await dump(lived_in, tmp_path / "b", "")
    assert not (tmp_path / "precious").exists()


async def test_a_full_disk_is_told_as_such(
    lived_in: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SetupError, match="the disk is full; free some space, or name"):
        await dump(lived_in, tmp_path / "b", "")
    assert os.listdir(tmp_path) == []  # noqa: PTH208 - see below


async def test_a_file_that_is_no_whole_backup_changes_nothing(
    lived_in: str, tmp_path: Path
) -> None:
    whole, file = tmp_path / "whole", tmp_path / "b"
    await dump(lived_in, whole, "")
    before = await everything(lived_in)
    for words, harm in HARMS:
        shutil.copy(whole, file)
        harm(file)
        with pytest.raises(UserError, match=words):
            await load(lived_in, file, force=True)
    assert await everything(lived_in) == before


def _rewritten(file: Path, change: Callable[[dict[str, bytes]], None]) -> None:
    with zipfile.ZipFile(file) as old:
        members = {name: old.read(name) for name in old.namelist()}
    change(members)
    with zipfile.ZipFile(file, "w") as new:
        for name, data in members.items():
            new.writestr(name, data)


def _flip(members: dict[str, bytes]) -> None:
    name = "tables/people.copy"
    members[name] = members[name].replace(b"ada", b"eve")


def _newer(members: dict[str, bytes]) -> None:
    manifest = json.loads(members["manifest.json"]) | {"version": 2, "unheard": "of"}
    members["manifest.json"] = json.dumps(manifest).encode()


def _other_tables(members: dict[str, bytes]) -> None:
    manifest = json.loads(members["manifest.json"])
    manifest["tables"] = [each for each in manifest["tables"] if each["name"] != "bans"]
    members["manifest.json"] = json.dumps(manifest).encode()


HARMS: tuple[tuple[str, Callable[[Path], object]], ...] = (
    ("damaged", lambda file: file.write_bytes(file.read_bytes()[:-200])),
    ("people does not match its checksum", lambda file: _rewritten(file, _flip)),
    ("install the Podium", lambda file: _rewritten(file, _newer)),
    ("tables of its own", lambda file: _rewritten(file, _other_tables)),
    ("is not a backup", lambda file: file.write_text("hello")),
    ("no such file", lambda file: file.unlink()),
)


async def test_an_older_backup_is_migrated_on_its_way(empty_dsn: str, tmp_path: Path) -> None:
    known = read_migrations(migrations_folder())
    folder = tmp_path / "old"
    folder.mkdir()
    for each in known[:16]:
        (folder / each.name).write_text(each.sql)
    await migrate(empty_dsn, folder)
    await fetch(
        empty_dsn,
        "insert into people (identity, name, created_at) values ('local:ada', 'Ada', now())",
    )
    await dump(empty_dsn, tmp_path / "b", "0.0.1")
    await load(empty_dsn, tmp_path / "b", force=True)
    [row] = await fetch(empty_dsn, "select max(number) as newest from schema_migrations")
    assert row["newest"] == len(known)
    assert [row["name"] for row in await fetch(empty_dsn, "select name from people")] == ["Ada"]


async def test_an_empty_database_has_nothing_to_back_up(empty_dsn: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nothing to back up"):
        await dump(empty_dsn, tmp_path / "b", "")
    assert os.listdir(tmp_path) == []  # noqa: PTH208 - for an async function it is as good
