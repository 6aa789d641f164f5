"""Fixtures for every test: the stores, each empty, over one Postgres for the whole session."""

import asyncio
import gc
import itertools
import math
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import coverage
import pytest
import pytest_asyncio
import structlog

from bot.store.embedded import open_database
from bot.store.postgres import PostgresStore, open_store
from runners.contract import comparison
from tests.doubles import databases, footprints, launcher
from tests.doubles.clock import ManualClock
from tests.doubles.memory_store import MemoryStore

TEMPLATE = "podium_template"
WAITING = {"e2e", "integration", "journeys"}
"""Folders of tests that mostly wait for other processes."""
collect_ignore_glob = ["exploits/honest*/*", "exploits/hostile*/*"]
"""Kernels that the judge runs: pytest would import one because of its name."""
_numbers = itertools.count(1)


def database_url(dsn: str, name: str) -> str:
    """The URL of another database of the same server."""
    return urlsplit(dsn)._replace(path=f"/{name}").geturl()


def pytest_addoption(parser: pytest.Parser) -> None:
    words = "number of calls that wait at each runner at once, even if each is a container"
    parser.addoption("--crowd", type=int, default=0, help=words)
    words = "journeys wait in real time instead of moving the program's clock"
    parser.addoption("--wall-clock", action="store_true", help=words)


def pytest_configure() -> None:
    """Make Ctrl-C reach the programs that tests start.

    A shell lets background processes ignore SIGINT, and their children inherit that.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection() -> None:
    gc.disable()


def pytest_collection_finish() -> None:
    """Exclude the collected tests from garbage collection, because they are never garbage.

    Each full collection took most of a second, in this process and in each one forked from it. What
    the tests themselves leave behind is collected less often than usual.
    """
    gc.freeze()
    gc.set_threshold(10_000)
    gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """If several files run at once, run those that wait for processes alongside those that compute.

    Two computing files at once take more than twice as long: judge and candidate poll each other.
    """
    if not hasattr(config, "workerinput"):
        return
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    waiting = [path for path in files if WAITING & set(path.parts)]
    computing = [path for path in files if not WAITING & set(path.parts)]
    places = {
        path: (number + 0.5) / len(group)
        for group in (waiting, computing)
        for number, path in enumerate(group)
    }
    items[:] = [item for path in sorted(places, key=places.__getitem__) for item in files[path]]


@pytest.fixture(scope="session", autouse=True)
def what_children_do_is_measured() -> Iterator[None]:
    """Do nothing unless coverage is measured."""
    with footprints.gathered(coverage.Coverage.current()):
        yield


@pytest.fixture(scope="session", autouse=True)
def programs_start_warm() -> Iterator[None]:
    """Fork our programs from processes that have imported what they need."""
    with launcher.warm():
        yield


@pytest.fixture(autouse=True)
def no_time_of_a_program_is_too_noisy(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rank all times where programs with few rounds run beside other tests."""
    if WAITING & set(request.path.parts):
        monkeypatch.setattr(comparison, "NOISY_MOST", math.inf)
        monkeypatch.setattr(comparison, "FLOOR_NS", 0.0)  # and none too short


@pytest.fixture(autouse=True)
def each_test_begins_with_a_log_that_nobody_has_configured() -> Iterator[None]:
    """Reset the log's configuration, which is global, after each test."""
    yield
    structlog.reset_defaults()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def memory_store(clock: ManualClock) -> MemoryStore:
    return MemoryStore(clock)


@pytest.fixture(scope="session")
def open_folder_root() -> Iterator[Path]:
    """A folder which the server's account can enter, unlike pytest's own when run as root."""
    with databases.temporary_folder("podium-tests-") as folder:
        yield folder


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def postgres_server(open_folder_root: Path) -> AsyncIterator[str]:
    """The URL of a server which has a migrated template database."""
    data_dir = open_folder_root / "session"
    await asyncio.to_thread(databases.copy_migrated, data_dir)
    async with open_database(data_dir) as database:
        await _execute(
            database_url(database.dsn, "template1"), f"create database {TEMPLATE} template postgres"
        )
        yield database.dsn


@pytest.fixture
async def postgres_dsn(postgres_server: str) -> AsyncIterator[str]:
    """The URL of a fresh, migrated database."""
    name = f"test_{next(_numbers)}"
    await _execute(
        postgres_server, f"create database {name} template {TEMPLATE} strategy file_copy"
    )
    yield database_url(postgres_server, name)
    await _execute(postgres_server, f"drop database {name} with (force)")


@pytest.fixture
async def postgres_store(postgres_dsn: str, clock: ManualClock) -> AsyncIterator[PostgresStore]:
    async with open_store(postgres_dsn, clock) as store:
        yield store


async def _execute(dsn: str, statement: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()
