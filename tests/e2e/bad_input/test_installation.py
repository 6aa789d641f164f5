"""Databases and data folders that cannot be used: the message, and exit code 3."""

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import pytest

from tests.e2e.command import Podium, json_refusal, refusal


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("postgresql://ada:hunter2@127.0.0.1:1/x", "no database at 127.0.0.1:1/x"),
        ("postgresql://ada:hunter2@host:port/x", "write postgresql://user:password@host:port/"),
        ("mysql://ada:hunter2@host/x", "not a valid URL of a Postgres database"),
    ],
)
def test_no_database_is_reachable(podium: Podium, url: str, words: str) -> None:
    answer = podium("show", DATABASE_URL=url)
    message = refusal(answer, 3)
    assert words in message
    assert "DATABASE_URL" in message
    assert "hunter2" not in message


@contextmanager
def _stranger() -> Iterator[int]:
    """A port on which something answers that is no Postgres."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(8)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        thread.join(10)


def test_the_port_is_in_use_by_a_stranger(podium: Podium) -> None:
    with _stranger() as port:
        answer = podium("show", "--json", DATABASE_URL=f"postgresql://ada@127.0.0.1:{port}/x")
    code, message = json_refusal(answer, 3)
    assert code == "setup"
    assert f"no database at 127.0.0.1:{port}/x" in message
    assert message.endswith("start it, or correct DATABASE_URL")


@pytest.mark.slow
def test_a_socket_that_a_dead_server_left_is_no_hindrance(podium: Podium) -> None:
    data = podium.folder / "left"
    assert podium("show", "--data", data).returncode == 0
    run = data / "postgres" / "run"
    (run / ".s.PGSQL.5432").touch()
    (run / ".s.PGSQL.5432.lock").write_text("999999\n/elsewhere\n0\n5432\n/elsewhere\n")
    assert podium("show", "--data", data).returncode == 0
    (run / ".s.PGSQL.5432").mkdir()
    message = refusal(podium("show", "--data", data), 3)
    assert "could not create any Unix-domain sockets" in message
    assert str(run) in message


@pytest.mark.slow
def test_a_migration_is_newer_than_the_code(hall: Podium, podium: Podium) -> None:
    address = hall.folder / "data" / "postgres" / "address.json"
    url = json.loads(address.read_text(encoding="utf-8"))["dsn"]
    newer = urlsplit(url)._replace(path="/newer").geturl()
    asyncio.run(_execute(url, "create database newer"))
    message = refusal(podium("show", DATABASE_URL=newer), 3)
    assert message.startswith("the database is missing migrations 1 to ")
    assert message.endswith("run `podium migrate`")
    assert podium("migrate", DATABASE_URL=newer).stdout.startswith("applied: 1, 2")
    record = "insert into schema_migrations (number, name, sha256) values (99, '0099_new.sql', '')"
    asyncio.run(_execute(newer, record))
    for command in ("show", "up", "migrate"):
        message = refusal(podium(command, DATABASE_URL=newer), 3)
        assert "the database is newer than this Podium: it has migration 0099_new.sql" in message
        assert message.endswith("install the newer Podium")


async def _execute(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


@pytest.mark.slow
def test_another_podium_serves_the_data_folder(hall: Podium) -> None:
    message = refusal(hall("up"), 3)
    assert message.startswith("data folder in use by Podium pid ")
    assert "choose another folder" in message


def test_a_data_folder_that_is_a_file(podium: Podium) -> None:
    podium.file("in_the_way", "")
    message = refusal(podium("show", "--data", "in_the_way"), 3)
    assert message.startswith("cannot write to in_the_way")
    assert message.endswith("choose another data folder with --data")


def test_a_disk_that_is_full(podium: Podium, small_disk: Path) -> None:
    message = refusal(podium("show", "--data", small_disk / "data"), 3)
    assert message.startswith("the disk is full: ")
    assert "free some, or choose another data folder" in message


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PODIUM_REQUIRE_SANDBOX", "perhaps"),
        ("PODIUM_LEASE_S", "soon"),
        ("PODIUM_RUNNERS", "lo cal"),
    ],
)
def test_an_environment_that_cannot_be_used(podium: Podium, name: str, value: str) -> None:
    message = refusal(podium("show", **{name: value}), 3)
    assert message.startswith("the environment cannot be used: ")
    assert name in message
