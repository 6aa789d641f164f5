"""A server that does not get ready, and how often one that ends is started again."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from bot.domain.errors import SetupError
from bot.store.embedded import programs, server
from bot.store.embedded.programs import Account
from bot.store.embedded.server import FIRST_RESTART_S, LAST_RESTART_S, Cluster


async def test_a_server_that_does_not_get_ready_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").mkdir()
    program = tmp_path / "postgres"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    started: list[asyncio.subprocess.Process] = []
    start = programs.start

    async def recorded(
        account: Account, arguments: Sequence[str], log: int
    ) -> asyncio.subprocess.Process:
        started.append(await start(account, arguments, log))
        return started[-1]

    monkeypatch.setattr(server, "start", recorded)
    monkeypatch.setattr(server, "START_LIMIT_S", 0.3)
    cluster = Cluster(tmp_path, tmp_path, Account(), "secret", tmp_path, tmp_path / "log")
    with pytest.raises(SetupError, match="was not ready"):
        await cluster.start()
    (process,) = started
    assert process.returncode is not None


def test_there_is_a_pause_before_each_restart() -> None:
    assert 0 < FIRST_RESTART_S < LAST_RESTART_S


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("FATAL: could not write: No space left on device\n", "the disk is full at {home}; free"),
        ("a\nb\nc\nFATAL: no such file\n", "did not start in {home}: b / c / FATAL: no such file"),
    ],
)
def test_a_server_that_ends_at_once_says_what_it_printed_or_that_the_disk_is_full(
    tmp_path: Path, output: str, message: str
) -> None:
    cluster = Cluster(tmp_path, tmp_path, Account(), "secret", tmp_path, tmp_path / "log")

    assert message.format(home=tmp_path) in str(cluster._start_error(output))


@pytest.mark.parametrize(
    ("uid", "gid", "mode", "may"),
    [
        (7, 9, 0o100, True),
        (7, 9, 0o011, False),
        (8, 9, 0o010, True),
        (8, 9, 0o101, False),
        (8, 10, 0o001, True),
        (8, 8, 0o110, False),
        (8, 10, 0o110, False),
    ],
)
def test_an_account_enters_a_folder_as_its_owner_its_group_or_anybody_may(
    uid: int, gid: int, mode: int, *, may: bool
) -> None:
    folder = os.stat_result((mode, 0, 0, 0, uid, gid, 0, 0, 0, 0))

    assert Account(7, 9)._may_pass(folder) is may
