"""Fixtures for every test: the stores, each empty, over one Postgres for the whole session."""

import gc
import itertools
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from shutil import rmtree
from urllib.parse import urlsplit

import asyncpg
import coverage
import pytest
import pytest_asyncio

from bot.store.embedded import open_database
from bot.store.memory import MemoryStore
from bot.store.migrate import migrate
from bot.store.postgres import PostgresStore, open_store
from tests.doubles import footprints
from tests.doubles.clock import ManualClock

TEMPLATE = "podium_template"
_numbers = itertools.count(1)


def database_url(dsn: str, name: str) -> str:
    """The URL of another database of the same server."""
    return urlsplit(dsn)._replace(path=f"/{name}").geturl()


def pytest_collection() -> None:
    gc.disable()


def pytest_collection_finish() -> None:
    """What thousands of tests were collected into is never garbage, and looking through it is slow:

    each full collection took most of a second, in this process and in each one forked from it.
    """
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def what_children_do_is_measured() -> Iterator[None]:
    """Nothing unless coverage is measured."""
    with footprints.gathered(coverage.Coverage.current()):
        yield


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def memory_store(clock: ManualClock) -> MemoryStore:
    return MemoryStore(clock)


@pytest.fixture(scope="session")
def open_folder_root() -> Iterator[Path]:
    """A folder which the server's account can enter, unlike pytest's own when run as root."""
    folder = Path(tempfile.mkdtemp(prefix="podium-tests-"))
    folder.chmod(0o711)
    yield folder
    rmtree(folder)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def postgres_server(open_folder_root: Path) -> AsyncIterator[str]:
    """The URL of a server which has a migrated template database."""
    async with open_database(open_folder_root / "session") as database:
        await _execute(database.dsn, f"create database {TEMPLATE}")
        await migrate(database_url(database.dsn, TEMPLATE))
        yield database.dsn


@pytest.fixture
async def postgres_dsn(postgres_server: str) -> AsyncIterator[str]:
    """The URL of a fresh, migrated database."""
    name = f"test_{next(_numbers)}"
    await _execute(postgres_server, f"create database {name} template {TEMPLATE}")
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
